"""An outage of our own, and jobs that run elsewhere: what is known stays known, what is not is told to nobody."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.sign import Sign, Word
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, at, jobs
from tests.engine.test_vigil import CHANNEL, announced, away, kept, told, watch

ELSEWHERE = {"external": True, "schedule": "0 * * * *", "grace": "30m", "notify": ["ops"]}


def elsewhere(store: SqlStore, **keys: object) -> Rig:
    return Rig(store, jobs({"a": {**ELSEWHERE, **keys}}, notify=CHANNEL))


def tell(rig: Rig, word: Word, ago: timedelta = timedelta()) -> None:
    rig.signs.take(Sign("a", word, ago=ago))


def failing_over_an_outage(store: SqlStore) -> Rig:
    """It failed at nine, and nobody listened when it may have told that it is well again."""
    rig = elsewhere(store)
    watch(rig, at(9, 1))
    tell(rig, Word.FAIL)
    rig = away(rig, minutes=40)
    rig.tick()
    return rig


def test_a_job_that_failed_before_an_outage_still_fails_after_it(sqlite: SqlStore) -> None:
    rig = failing_over_an_outage(sqlite)
    assert (kept(rig), told(rig)) == (("failing", at(9, 1)), [])
    assert rig.state("a").deadline_at == at(10, 30), "what may have been told is excused"


def test_its_recovery_is_told(store: SqlStore) -> None:
    rig = failing_over_an_outage(store)
    watch(rig, at(10, 1))
    tell(rig, Word.SUCCESS)
    assert (kept(rig)[0], announced(rig)) == ("up", ["failing", "recovered"])


def test_its_failure_is_not_told_twice(sqlite: SqlStore) -> None:
    rig = failing_over_an_outage(sqlite)
    watch(rig, at(10, 1))
    tell(rig, Word.FAIL)
    assert announced(rig) == ["failing"]
    watch(rig, at(11, 1))
    tell(rig, Word.SUCCESS)
    assert announced(rig) == ["failing", "missed", "recovered"]


@pytest.mark.parametrize("minutes", [2, 10, 20])
def test_an_outage_anywhere_within_the_grace_may_have_swallowed_the_end(sqlite: SqlStore, minutes: int) -> None:
    rig = elsewhere(sqlite)
    watch(rig, at(9, minutes))
    rig = away(rig, seconds=70)
    watch(rig, at(9, 31))
    assert (kept(rig)[0], announced(rig)) == ("unknown", [])


def test_nor_does_a_start_before_it_tell_more(sqlite: SqlStore) -> None:
    rig = elsewhere(sqlite)
    watch(rig, at(9, 1))
    tell(rig, Word.START)
    rig = away(rig, minutes=5)
    watch(rig, at(9, 31))
    assert kept(rig)[0] == "unknown"


@pytest.mark.parametrize("timeout", ["24h", "5m"], ids=["under way", "given up"])
def test_a_run_that_began_after_it_was_heard_from_its_beginning(sqlite: SqlStore, timeout: str) -> None:
    rig = elsewhere(sqlite, timeout=timeout, alert_after=9)
    watch(rig, at(9, 1))
    rig = away(rig, minutes=5)
    watch(rig, at(9, 7))
    tell(rig, Word.START)
    while rig.clock.now() < at(9, 31):
        watch(rig, rig.clock.now() + timedelta(minutes=1))
        rig.signs.tick(None)
    assert (kept(rig), announced(rig)) == (("missed", at(9, 30)), ["missed"])


def test_a_run_of_which_a_failure_was_told_after_it_has_not_succeeded_in_it(store: SqlStore) -> None:
    rig = elsewhere(store, alert_after=9)
    watch(rig, at(9, 1))
    tell(rig, Word.START)
    rig = away(rig, minutes=5)
    watch(rig, at(9, 10))
    tell(rig, Word.FAIL)
    watch(rig, at(9, 31))
    assert (kept(rig), announced(rig)) == (("missed", at(9, 30)), ["missed"])


@pytest.mark.parametrize(
    "ago", [timedelta(minutes=5), timedelta(minutes=9)], ids=["during the outage", "before the outage"]
)
def test_a_failure_that_was_told_late_is_dated_by_its_sender(sqlite: SqlStore, ago: timedelta) -> None:
    """A further try may have ended well after it, and told that to nobody."""
    rig = elsewhere(sqlite, alert_after=9)
    watch(rig, at(9, 1))
    rig = away(rig, minutes=5)
    watch(rig, at(9, 10))
    tell(rig, Word.FAIL, ago)
    watch(rig, at(9, 31))
    assert kept(rig)[0] == "unknown"


def test_a_run_of_the_next_instant_tells_nothing_of_this_one(sqlite: SqlStore) -> None:
    rig = elsewhere(sqlite, grace="90m", alert_after=9)
    watch(rig, at(9, 1))
    rig = away(rig, minutes=5)
    watch(rig, at(10))
    tell(rig, Word.START)
    watch(rig, at(10, 31))
    assert kept(rig)[0] == "unknown"
    watch(rig, at(11, 31))
    assert kept(rig) == ("missed", at(11, 30)), "now somebody listened"
