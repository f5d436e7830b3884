"""The stored deadline: by when a job must have succeeded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.commands import IfBusy
from scheduler.store.store import SqlStore
from tests.engine.doubles import TurnedClock
from tests.engine.rig import START, Rig, at, failed, jobs

HOURLY = {"schedule": "0 * * * *", "grace": "15m"}


def deadline(rig: Rig, job: str = "a") -> datetime | None:
    return rig.state(job).deadline_at


def test_a_job_that_never_ran_has_one_from_its_load_on(store: SqlStore) -> None:
    """H01"""
    rig = Rig(store, jobs({"a": HOURLY}))
    assert deadline(rig) == at(9, 15)
    rig.tick(hours=1)
    rig.finish(failed())
    rig.tick(hours=3)
    assert deadline(rig) == at(9, 15)


def test_a_success_settles_its_instant_and_those_before(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.tick(hours=1)
    rig.finish(failed())
    rig.tick(hours=1)
    rig.turn(minutes=40)
    rig.finish()
    assert deadline(rig) == at(11, 15)


def test_a_success_by_hand_does_not_pay_for_an_instant_to_come(store: SqlStore) -> None:
    """H11: success belongs to an instant, not to the first sign of life after it."""
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.tick(hours=1, minutes=30)
    rig.finish(failed())
    rig.turn(minutes=29, seconds=40)
    rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    rig.turn(minutes=3)
    rig.finish()
    assert deadline(rig) == at(10, 15)


def test_a_retry_of_an_older_run_never_moves_it_back(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**HOURLY, "overlap": "allow", "retries": ["2h"]}}))
    rig.tick(hours=1)
    rig.finish(failed())
    rig.tick(hours=1)
    rig.finish()
    assert deadline(rig) == at(11, 15)
    rig.tick(hours=1, minutes=20)
    rig.executor.finish(next(run.id for run in rig.runs("a") if run.scheduled_for == at(9)))
    rig.tick()
    assert deadline(rig) == at(11, 15)


def test_an_overlap_skip_is_excused_while_its_blocker_is_young(store: SqlStore) -> None:
    """H14: a hung job must not excuse itself for ever."""
    rig = Rig(store, jobs({"a": {"schedule": "*/10 * * * *", "grace": "25m"}}))
    rig.tick(minutes=10)
    rig.finish()
    assert deadline(rig) == at(8, 45)
    rig.tick(minutes=10)
    rig.tick(minutes=10)
    rig.tick(minutes=10)
    assert deadline(rig) == at(8, 45), "the blocker itself is late"
    rig.finish()
    assert deadline(rig) == at(9, 15), "8:20 is done, 8:30 and 8:40 are excused"


def test_a_blocker_that_grows_old_excuses_no_more(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "*/10 * * * *", "grace": "25m"}}))
    rig.turn(minutes=5)
    rig.desk.run_now("a", author="me")
    rig.tick()
    seen = []
    for minutes in (5, 10, 10, 10):
        rig.tick(minutes=minutes)
        seen.append(deadline(rig))
    assert seen == [at(8, 45), at(8, 55), at(8, 55), at(8, 55)]
    assert rig.skipped("a") == [("overlap", at(8, 10), at(8, 40), 4)]


@pytest.mark.parametrize("status", ["missed", "lock"])
def test_missed_instants_and_waits_for_locks_are_not_excused(sqlite: SqlStore, status: str) -> None:
    rig = Rig(sqlite, jobs({"a": {**HOURLY, "catch_up": "none", "lock": "l"}, "b": {"lock": "l"}}))
    if status == "lock":
        rig.desk.run_now("b", author="me")
        rig.tick()
        for _ in range(3):
            rig.tick(hours=1)
    else:
        rig.tick(hours=3, minutes=30)
    assert {skip.reason for skip in rig.skips("a")} == {status}
    assert deadline(rig) == at(9, 15)


def test_a_pause_takes_it_away_and_its_end_gives_it_back(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.desk.pause(["a"], until=None, reason="", author="me")
    assert deadline(rig) is None
    rig.tick(hours=5)
    assert deadline(rig) is None
    rig.turn(seconds=1)
    rig.desk.resume(["a"], author="me")
    assert deadline(rig) == at(14, 15)


def test_a_pause_that_ends_by_itself_is_known_beforehand(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": HOURLY}))
    rig.desk.pause(["a"], until=at(11), reason="", author="me")
    assert deadline(rig) == at(11, 15)


def test_a_pause_does_not_settle_what_was_late_before(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.tick(hours=1)
    rig.finish(failed())
    rig.turn(minutes=1)
    rig.desk.pause(["a"], until=None, reason="", author="me")
    assert deadline(rig) == at(9, 15)
    rig.tick(hours=2)
    rig.desk.resume(["a"], author="me")
    assert deadline(rig) == at(9, 15)


def test_removal_takes_it_away(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.reload(jobs())
    assert deadline(rig) is None


def test_an_edit_begins_anew_unless_it_was_missed(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY, "b": HOURLY}))
    rig.tick(hours=1, minutes=5)
    rig.executor.finish(*rig.executor.of("a"))
    rig.executor.finish(*rig.executor.of("b"), failed())
    rig.tick(minutes=15)
    assert (deadline(rig, "a"), deadline(rig, "b")) == (at(10, 15), at(9, 15))
    new = {"schedule": "30 * * * *", "grace": "5m"}
    rig.reload(jobs({"a": new, "b": new}))
    assert deadline(rig, "a") == at(9, 35)
    missed = deadline(rig, "b")
    assert missed is not None
    assert missed < rig.clock.now()


def test_a_longer_grace_counts_at_once(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": HOURLY}))
    rig.turn(minutes=30)
    rig.reload(jobs({"a": {**HOURLY, "grace": "45m"}}))
    assert deadline(rig) == at(9, 45)


@pytest.mark.parametrize("entry", [{"heartbeat": False}, {"enabled": False}])
def test_jobs_that_nobody_watches_have_none(sqlite: SqlStore, entry: dict[str, object]) -> None:
    rig = Rig(sqlite, jobs({"a": {**HOURLY, **entry}, "b": {}}))
    assert (deadline(rig, "a"), deadline(rig, "b")) == (None, None)


def test_it_follows_the_zone_of_the_job(sqlite: SqlStore) -> None:
    """H10: eight o'clock in Berlin is six in summer."""
    clock = TurnedClock(datetime(2026, 7, 1, 5, 59, tzinfo=UTC))
    entry = {"schedule": "0 8 * * *", "timezone": "Europe/Berlin", "grace": "1h"}
    rig = Rig(sqlite, jobs({"a": entry}), clock)
    rig.tick(minutes=1, seconds=5)
    rig.finish()
    assert deadline(rig) == datetime(2026, 7, 2, 7, tzinfo=UTC)


def test_hours_in_which_nothing_is_expected_raise_no_alarm(sqlite: SqlStore) -> None:
    """H13"""
    clock = TurnedClock(datetime(2026, 7, 1, 21, 54, tzinfo=UTC))
    entry = {"schedule": "*/5 6-23 * * *", "timezone": "Europe/Amsterdam", "grace": "15m"}
    rig = Rig(sqlite, jobs({"a": entry}), clock)
    rig.tick(minutes=1)
    rig.finish()
    assert deadline(rig) == datetime(2026, 7, 2, 4, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "now", "then", "following"),
    [
        ("30 2 * * *", (2026, 3, 8, 5), (2026, 3, 8, 7), (2026, 3, 9, 6, 30)),
        ("30 1 * * *", (2026, 11, 1, 4), (2026, 11, 1, 5, 30), (2026, 11, 2, 6, 30)),
    ],
)
def test_what_is_expected_on_the_days_of_change(
    sqlite: SqlStore, expression: str, now: tuple[int, ...], then: tuple[int, ...], following: tuple[int, ...]
) -> None:
    """H16, C22: one expectation a day, and no second one in the hour that comes twice."""
    clock = TurnedClock(datetime(*now, tzinfo=UTC))  # type: ignore[misc, arg-type]
    rig = Rig(sqlite, jobs({"a": {"schedule": expression, "timezone": "America/New_York", "grace": "1h"}}), clock)
    expected, next_one = (datetime(*one, tzinfo=UTC) for one in (then, following))  # type: ignore[misc, arg-type]
    assert deadline(rig) == expected + timedelta(hours=1)
    clock.turn(seconds=(expected - clock.now()).total_seconds())
    rig.tick()
    rig.finish()
    for _ in range(5):
        rig.tick(minutes=30)
    assert len(rig.runs("a")) == 1
    assert deadline(rig) == next_one + timedelta(hours=1)


def test_a_blackout_is_excused(sqlite: SqlStore) -> None:
    blackout = {"from": "2026-03-02 08:30", "to": "2026-03-02 10:30", "reason": "backup"}
    rig = Rig(sqlite, jobs({"a": {**HOURLY, "blackouts": [blackout]}}))
    assert deadline(rig) == at(11, 15)
    assert at(11) > START
