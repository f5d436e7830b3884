"""docs/compensation.md, a source in ten minutes: typed as it stands there, with a real daemon and a provider."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from scheduler.testing.faults import Faults
from scheduler.testing.provider import Provider
from tests.docs.markdown import DOCS, commands, sections
from tests.docs.reader import Reader
from tests.until import until

TEXT = (DOCS / "compensation.md").read_text("utf-8")
STEPS = commands(sections(TEXT, 2)["A source in ten minutes"].replace("\n   ", "\n"))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    person = Reader(tmp_path)
    person.at = tmp_path
    yield person
    person.leave()


@pytest.mark.crash
def test_every_step_does_what_it_is_shown_to_do(reader: Reader) -> None:
    folder = reader.at
    (folder / "jobs.d").mkdir()
    (folder / "jobs.yaml").write_text('include: ["jobs.d/*.yaml"]\njobs: {}\n', "utf-8")
    with Provider(Faults(drop=1.0), dialect="stripe") as provider:
        now = provider.facts.now()
        provider.facts.spread(12, now.replace(microsecond=0) - timedelta(seconds=1800), now - timedelta(seconds=900))
        reader.environment |= {"STRIPE_API_KEY": provider.key, "STRIPE_WEBHOOK_SECRET": provider.secret}
        assert STEPS[0] == "schedctl init source stripe > jobs.d/stripe.yaml"
        reader.type("schedulerd --state-dir var")
        for line in STEPS:
            reader.type(line)
            if line == STEPS[0]:
                there = folder / "jobs.d" / "stripe.yaml"
                text = there.read_text("utf-8")
                key = "api_key: {env: STRIPE_API_KEY}"
                assert key in text
                there.write_text(text.replace(key, f"{key}\n        base_url: {provider.url}"), "utf-8")
    shown = reader.shown
    assert "  webhook  " in shown["schedctl events stripe"]
    assert "12 would be found" in shown["schedctl scan stripe-scan --dry-run"]
    assert "0 known + 12 found" in shown["schedctl scan stripe-scan"]
    until(lambda: "COMPLETED" in reader.ask("schedctl runs stripe-events -n 1"), 60)
