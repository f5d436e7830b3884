"""`schedctl scan` and `schedctl scans`: looking for events whose webhook never came."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from scheduler.cli.surface import Surface
from scheduler.cli.verbs.scan import FOREIGN, Told
from scheduler.core.compensator import Coverage, ListingFailed
from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.engine.senders import event, told
from tests.faces import Faces, Served
from tests.scans.provider import DAY, MINUTE, Provider, attach
from tests.until import until

JOBS = """
version: 1
defaults: {timezone: America/New_York}
sources:
  payments:
    signature: {scheme: hmac, header: X-Signature, secrets: [{env: SECRET}]}
    event: {id: id, type: type, occurred_at: at, subject: about}
jobs:
  ticket: {on_event: {source: payments}, command: ["true"]}
  payments-scan:
    compensate: {source: payments, compensator: http_list, with: {url: "https://pay.example.com/events", cursor: next}}
"""


@pytest.fixture
def faces(store: SqlStore) -> Faces:
    return Faces(store, JOBS)


@pytest.fixture
def provider(faces: Faces) -> Provider:
    made = Provider(faces.rig.clock)
    attach(faces.rig, {"payments-scan": made})
    return made


@pytest.fixture
def served(faces: Faces, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    with faces.served() as found:
        yield found


def scanned(screen: Screen, *options: str) -> list[str]:
    """What is shown of a scan, which the daemon carries out meanwhile."""
    shown: list[str] = []
    before = len(screen.rig.runs("payments-scan"))
    typed = threading.Thread(target=lambda: shown.extend(screen("scan", "payments-scan", *options)))
    typed.start()
    until(lambda: len(screen.rig.runs("payments-scan")) > before)
    screen.rig.tick()
    screen.rig.tick(seconds=1)
    typed.join(20)
    return shown


def test_a_scan_says_what_it_came_to(screen: Screen, provider: Provider) -> None:
    provider.happens("lost", 30 * MINUTE)
    lines = scanned(screen)
    assert screen.code == 0
    assert "listed       1 = 0 known + 1 found + 0 too young + 0 unreadable" in lines
    assert "asked        1 page, 1 call, 0 throttled" in lines
    assert "✓ complete" in screen.err
    assert FOREIGN in screen.err
    assert screen.next == "schedctl events --missed"
    assert len(screen.rig.runs("ticket")) == 1
    lines = scanned(screen)
    assert "listed       1 = 1 known + 0 found + 0 too young + 0 unreadable" in lines
    assert FOREIGN in screen.err
    assert "ahead" not in lines[0]
    item = provider.happens("sent", 6 * MINUTE)
    told(screen.rig, event("sent", occurred_at=item.occurred_at))
    provider.skew = 10 * MINUTE
    line = scanned(screen)[0]
    assert FOREIGN not in screen.err
    assert re.search(r" \(in \dm\); the provider's clock is at least 4m\d+s ahead$", line)


def test_a_dry_run_that_cannot_look_says_why(
    screen: Screen, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Coverage:
        raise ListingFailed("connection refused", final=True)

    monkeypatch.setattr(provider, "coverage", away)
    scanned(screen, "--dry-run")
    assert screen.code == 1
    assert "dry run: the list cannot be read: connection refused" in screen.err


def test_a_scan_that_is_tried_again_says_why_and_when(
    screen: Screen, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen.rig.reload(JOBS + "    retries: [1m]\n")
    provider.fails[1] = ListingFailed("503 Service Unavailable")
    said: list[str] = []
    say = Surface.say

    def heard(surface: Surface, text: str) -> None:
        say(surface, text)
        said.append(text)

    monkeypatch.setattr(Surface, "say", heard)
    typed = threading.Thread(target=lambda: screen("scan", "payments-scan"))
    typed.start()
    until(lambda: bool(screen.rig.runs("payments-scan")))
    screen.rig.tick()
    screen.rig.tick(seconds=1)
    until(lambda: bool(said))
    start = "attempt 1 failed: the list cannot be read: 503 Service Unavailable; next in "
    assert said[0].startswith(start)
    assert said[0].endswith("; Ctrl-C leaves it running")
    screen.rig.turn(minutes=2)
    screen.rig.tick()
    screen.rig.tick(seconds=1)
    typed.join(20)
    assert sum(one.startswith("attempt") for one in said) == 1
    assert (screen.code, "✓ complete" in screen.err) == (0, True)


def test_a_long_attempt_is_told_once(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    tell = Told(Surface({"TERM": "dumb"}))
    for _ in range(20):
        tell({"status": "RUNNING", "attempt": 1})
    assert capsys.readouterr().err == "the provider is being asked; Ctrl-C leaves it running\n"


def test_a_refused_scan_says_what_to_do_with_scan(screen: Screen, provider: Provider) -> None:
    run, _ = screen.rig.desk.run_now("payments-scan", author="ana")
    screen("scan", "payments-scan")
    assert screen.code == 5
    assert f"schedctl cancel {run.id[-8:]}, then schedctl scan payments-scan" in screen.err
    assert "run-now" not in screen.err


def test_a_dry_run_changes_nothing(screen: Screen, provider: Provider) -> None:
    provider.happens("lost", 30 * MINUTE)
    assert "listed       1 = 0 known + 1 would be found + 0 too young + 0 unreadable" in scanned(screen, "--dry-run")
    assert screen.code == 0
    assert screen.next == "schedctl scan payments-scan"
    assert screen.rig.runs("ticket") == []
    (run,) = screen.rig.runs("payments-scan")
    assert (run.status, run.reason) == ("CANCELED", "dry run: nothing was written")
    with screen.rig.store.read() as tx:
        assert tx.scans.state("payments-scan") is None
        assert tx.events.get("payments", "lost") is None
    assert screen.json("scans")["scans"][0]["last"] is None


def test_a_scan_that_proves_nothing_is_a_bad_answer(screen: Screen, provider: Provider) -> None:
    provider.fails[1] = ListingFailed("401 Unauthorized", final=True)
    scanned(screen)
    assert screen.code == 1
    assert "✗ not complete: the list cannot be read: 401 Unauthorized" in screen.err
    assert screen.next.startswith("schedctl logs ")


def test_what_nobody_scans_is_said_clearly(screen: Screen, provider: Provider) -> None:
    screen("scan", "ticket")
    assert screen.code == 4
    assert "no scan job 'ticket'" in screen.err
    assert "there are payments-scan" in screen.err


def test_scans_shows_where_each_stands(screen: Screen, provider: Provider) -> None:
    assert "never" in screen("scans")[1]
    provider.happens("lost", 30 * MINUTE)
    scanned(screen)
    header, line = screen("scans")
    assert header.split()[:3] == ["SCAN", "SOURCE", "STATE"]
    assert line.split()[:3] == ["payments-scan", "payments", "complete"]
    assert line.split()[-1] == "100.0%"
    assert screen.next == "schedctl scans payments-scan"
    scanned(screen, "--dry-run")
    assert [row.split()[0] for row in screen("scans", "payments-scan")] == [
        "RUN",
        *(run.id[-8:] for run in reversed(screen.rig.runs("payments-scan"))),
    ]
    (shown,) = screen.json("scans")["scans"]
    assert shown["lag_s"] > 0
    assert shown["under_way"] is None
    assert shown["last"]["injected"] == 1


def test_scans_names_holes(screen: Screen, provider: Provider) -> None:
    provider.keeps = 2 * DAY
    scanned(screen)
    screen.rig.turn(days=5)
    scanned(screen)
    assert "hole in payments: " in screen.err
    problem = next(one for one in screen.json("status")["problems"] if one["kind"] == "hole")
    assert problem["command"] == "schedctl scans payments-scan"
    screen("scans")
    assert "cannot be proven complete: older than what the provider still lists" in screen.err
    (hole,) = screen.json("scans", "payments-scan")["holes"]
    assert hole["source"] == "payments"


def test_what_nobody_could_read_is_shown(screen: Screen, provider: Provider) -> None:
    provider.size = 20
    provider.happens("good", 30 * MINUTE)
    for number in range(11):
        provider.poison(f'{{"odd": "\n{number}", "rest": "{"x" * 3000}"}}', (40 + number) * MINUTE)
    scanned(screen)
    assert "✓ complete, but 11 items of the list could not be read" in screen.err
    assert (screen.code, screen.next) == (0, "schedctl scans payments-scan")
    assert "complete, 11 unreadable" in screen("scans")[1]
    assert "complete, 11 unreadable" in screen("scans", "payments-scan")[1]
    told_of = [line for line in screen.err.splitlines() if line.startswith("unreadable item of 2026-")]
    assert len(told_of) == 10
    assert all(': no id: {"odd": " ' in line for line in told_of)
    assert all(len(line) < 250 and line.endswith("x…") for line in told_of)
    assert "… and older ones; all that are kept: schedctl scans payments-scan --limit 100 -o json" in screen.err
    asides = screen.json("scans", "payments-scan")["asides"]
    assert {(one["job"], one["why"], len(one["begins"])) for one in asides} == {("payments-scan", "no id", 2000)}
    assert min(one["length"] for one in asides) > 3000
    assert screen.json("scans", "payments-scan", "--limit", "3")["asides"] == asides[:3]


def test_a_dry_run_shows_what_it_cannot_read_and_keeps_none_of_it(screen: Screen, provider: Provider) -> None:
    provider.size = 20
    for number in range(12):
        provider.poison(f'{{"odd": {number}, "rest": "{"x" * 3000}"}}', (40 + number) * MINUTE)
    scanned(screen, "--dry-run")
    told_of = [line for line in screen.err.splitlines() if line.startswith("unreadable item of 2026-")]
    assert len(told_of) == 10
    assert all(': no id: {"odd": ' in line for line in told_of)
    found = screen.json("scans", "payments-scan")
    assert found["asides"] == []
    asides = found["reports"][0]["asides"]
    assert {(one["job"], one["source"], one["why"], len(one["begins"])) for one in asides} == {
        ("payments-scan", "payments", "no id", 2000)
    }
    assert (len(asides), min(one["length"] for one in asides) > 3000) == (10, True)
    scanned(screen)
    found = screen.json("scans", "payments-scan")
    assert (len(found["asides"]), found["reports"][0]["asides"]) == (12, [])


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_that_nothing_is_old_enough_is_no_bad_answer(
    screen: Screen, provider: Provider, options: tuple[str, ...]
) -> None:
    screen.rig.reload(JOBS.replace("compensator: http_list", "compensator: http_list, settle: 2h, first_window: 1h"))
    scanned(screen, *options)
    assert screen.code == 0
    assert "nothing is old enough yet" in screen.err
    assert screen.next == "schedctl scans payments-scan"


def test_a_window_under_way_shows_its_page(screen: Screen, provider: Provider) -> None:
    provider.size = 1
    for minute in (30, 20, 10):
        provider.happens(f"e{minute}", timedelta(minutes=minute))
    provider.fails[3] = ListingFailed("500")
    scanned(screen)
    assert screen.code == 1
    assert screen("scans")[1].split()[2:4] == ["page", "3"]
    assert screen.json("scans")["scans"][0]["under_way"]["listed"] == 2


def test_status_tells_of_webhooks_that_the_list_lacks(screen: Screen, provider: Provider) -> None:
    provider.happens("both", 30 * MINUTE)
    at = screen.rig.clock.now() - 20 * MINUTE
    told(screen.rig, event("forged", occurred_at=at))
    lines = scanned(screen)
    assert "unlisted     1 came by webhook and is not in the list: forged" in lines
    text = "\n".join(screen("status"))
    assert "1 webhook of payments came and is not in its list" in text
    assert screen.code == 1
