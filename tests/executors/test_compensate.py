"""The executor of scans: what the worker gets, what the engine gets, and what nobody gets to see."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.compensator import ListingFailed
from scheduler.core.model import FailReason
from scheduler.core.outcome import Snoozed
from tests.executors.harness import Bench, Going, secret
from tests.executors.listing import plug_in


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"SCHEDULER_PLUGINS": plug_in(tmp_path / "plugins"), "KEY": "k-hunter2-key", "HEAD": "h-hunter2-head"}


def start(bench: Bench, does: str = "echo", *, source: str = "payments", **options: Any) -> Going:
    action = {"source": source, "compensator": "listing", "with": {"does": does, **options}}
    return bench.start("compensate", action)


def test_pages_reach_the_engine_one_by_one(bench: Bench) -> None:
    start(bench).succeeded()
    assert [page.next for page in bench.scanning.pages] == [0, 1, None]
    assert len(bench.scanning.coverages) == 1


def test_the_compensator_is_told_where_the_source_has_its_fields(bench: Bench) -> None:
    start(bench).succeeded()
    (item,) = bench.scanning.pages[0].items
    assert item.body["id"] == "data.id"  # type: ignore[union-attr]


def test_a_compensator_can_ask_what_came_already(bench: Bench) -> None:
    going = start(bench, "ask")
    going.succeeded()
    going.until_output("known ['a'] []")
    assert len(bench.scanning.pages) == 3


def test_who_cannot_be_told_what_came_ends_in_order(bench: Bench) -> None:
    """The database is away in the middle of a page; the worker serves the next scan."""

    def away(ids: Collection[str]) -> Collection[str]:
        raise ListingFailed("the database is away")

    bench.scanning.known = away
    assert start(bench, "ask").failed().error == "the database is away"
    start(bench).succeeded()


def test_secrets_are_read_when_the_run_starts_and_shown_nowhere(bench: Bench) -> None:
    going = start(bench, key=secret("KEY"), headers={"X-Key": secret("HEAD", "Bearer ")})
    going.succeeded()
    (item,) = bench.scanning.pages[0].items
    assert item.body["key"] == "k-hunter2-key"  # type: ignore[union-attr]
    going.until_output("begun *** {'X-Key': '***'}")


def test_a_secret_in_an_error_is_masked(bench: Bench) -> None:
    failed = start(bench, "tell", key=secret("KEY")).failed()
    assert (failed.error, failed.retryable) == ("401 for ***", False)
    outcome = start(bench, "throttle", key=secret("KEY")).outcome()
    assert isinstance(outcome, Snoozed)
    assert (outcome.error, outcome.delay) == ("429 for ***", timedelta(seconds=90))


def test_a_missing_secret_names_its_place(bench: Bench) -> None:
    failed = start(bench, headers={"X-Key": secret("NOT_SET")}).failed()
    assert failed.reason is FailReason.SPAWN
    assert "with.headers.X-Key" in failed.error
    assert "NOT_SET" in failed.error


def test_a_source_that_is_gone_is_an_outcome(bench: Bench) -> None:
    failed = start(bench, source="gone").failed()
    assert failed.error == "there is no source gone"


def test_a_bug_of_ours_is_an_outcome(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(bench.scanning, "scan", broken)
    failed = start(bench).failed()
    assert (failed.reason, failed.error) == (FailReason.ERROR, "KeyError: 'surprise'")
