"""docs/order-exceptions.md, typed as it stands there, with a real daemon and the provider that loses webhooks."""

from __future__ import annotations

import http.client
import json
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from scheduler.config.check import check
from scheduler.config.sources import Stored
from tests.docs.markdown import DOCS, ROOT, anchors, blocks, commands, links
from tests.docs.reader import Reader
from tests.until import until

TEXT = (DOCS / "order-exceptions.md").read_text("utf-8")
TYPED = commands(TEXT)


class Desk(Reader):
    """Who looks at the tickets as well."""

    def tickets(self) -> list[list[str]]:
        return [line.split() for line in self.ask("python3 ticket.py").splitlines()]

    def runs(self) -> list[dict[str, str]]:
        runs: list[dict[str, str]] = json.loads(self.ask("schedctl runs order-exception -n 1000 -o json"))
        return runs

    def listed(self) -> tuple[list[dict[str, str]], datetime]:
        """What happened, by the provider's own list, and the provider's time. Some of its calls fail."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.list_port}/events?limit=250",
            headers={"Authorization": f"Bearer {self.environment['PAYMENTS_KEY']}"},
        )
        for _ in range(20):
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    now = parsedate_to_datetime(answer.headers["Date"])
                    return [one for one in json.load(answer)["data"] if "event_id" in one], now
            except (OSError, http.client.HTTPException):
                continue
        raise AssertionError("the provider never answers")

    def all_is_settled(self) -> bool:
        """A reader takes a moment before scanning: nothing is too young then, or not yet in the list."""
        events, now = self.listed()
        newest = max(datetime.fromisoformat(one["occurred_at"]) for one in events)
        return now - newest > timedelta(seconds=5)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Desk]:
    person = Desk(tmp_path)
    yield person
    person.leave()


@pytest.mark.crash
def test_every_command_does_what_it_is_shown_to_do(reader: Desk) -> None:
    for line in TYPED:
        if line.startswith("python3 ticket.py") or line == "schedctl logs order-exception":
            until(lambda: all(run["status"] == "COMPLETED" for run in reader.runs()), 60)
        if line.startswith("schedctl scan "):
            until(reader.all_is_settled, 60)
        reader.type(line)
    failed = {one["event_id"] for one in reader.listed()[0] if one["event"] == "payment.failed"}
    tickets = reader.tickets()
    assert len(failed) >= 15
    assert sorted(event for _, event, _, _ in tickets) == sorted([*failed, "evt_mine"])
    assert {via for _, _, _, via in tickets} == {"webhook", "scan"}
    # Ten webhooks: one run. Ten replays: ten runs, and one ticket all the same.
    assert len(reader.runs()) == len(failed) + 1 + 10
    assert "was there already" in reader.shown["schedctl logs order-exception"]


def test_the_job_that_asks_over_http_is_good() -> None:
    (example,) = blocks(TEXT, "yaml")
    sources = (ROOT / "examples" / "orders" / "jobs.yaml").read_text("utf-8").partition("\njobs:\n")[0]
    report = check(
        Stored({"f": f"{sources}\n{example}"}, "f"),
        datetime(2026, 1, 1, tzinfo=UTC),
        environ={"PAYMENTS_WEBHOOK_SECRET": "set"},
    )
    assert not report.errors, report.errors
    assert not report.warnings, report.warnings


@pytest.mark.parametrize("link", sorted(set(links(TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    file, _, anchor = link.partition("#")
    assert (DOCS / file).exists()
    assert not anchor or anchor in anchors((DOCS / file).read_text("utf-8"))
