"""Pauses and blackouts: instants inside do not run, and nothing of a paused job is claimed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.commands import IfBusy
from scheduler.core.errors import Refused
from scheduler.core.model import Cause, Status, WaitsFor
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.rig import START, Rig, at, failed, instants, jobs


def test_a_paused_instant_is_not_a_missed_one(store: SqlStore) -> None:
    """C13: resuming runs nothing of what lay in the pause."""
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *", "catch_up": "all"}}))
    rig.turn(minutes=55)
    rig.desk.pause(["a"], until=None, reason="holiday", author="me")
    rig.tick(minutes=60)
    assert rig.desk.resume(["a"], author="me") == ["a"]
    rig.tick()
    assert rig.runs("a") == []
    (skip,) = rig.skips("a")
    assert (skip.reason, skip.first, skip.detail) == ("paused", at(9), "holiday (me)")
    rig.tick(minutes=5)
    assert instants(rig.runs("a")) == [at(10)]


def test_a_pause_that_nobody_looked_at_while_it_lasted_counts_all_the_same(store: SqlStore) -> None:
    """Each instant is judged against the pauses of its own time, whenever that is done."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "catch_up": "all", "overlap": "allow"}}))
    rig.turn(minutes=2, seconds=30)
    rig.desk.pause(["a"], until=at(8, 5), reason="holiday", author="me")
    rig.tick(minutes=5)
    assert instants(rig.runs("a")) == [at(8, minute) for minute in (1, 2, 5, 6, 7)]
    assert rig.skipped("a") == [("paused", at(8, 3), at(8, 4), 2)]


def test_a_day_of_pause_costs_one_row(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * *"}}))
    rig.desk.pause(["a"], until=at(8, day=3), reason="holiday", author="me")
    for _ in range(24):
        rig.tick(hours=1)
    assert rig.skipped("a") == [("paused", at(8, 1), at(7, 59, day=3), 1439)]
    assert instants(rig.runs("a")) == [at(8, day=3)]
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []


def test_a_pause_ends_by_itself_and_what_waited_goes_on(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"overlap": "queue"}}))
    rig.desk.pause(["a"], until=at(8, 1), reason="", author="me")
    runs = [rig.desk.run_now("a", author="me", payload=n, has_payload=True, cause=Cause.API)[0] for n in range(3)]
    rig.tick()
    assert {rig.run(run.id).waits_for for run in runs} == {WaitsFor.PAUSE}
    rig.tick(seconds=59)
    assert rig.executor.started == []
    rig.tick(seconds=1)
    for _ in range(3):
        rig.finish()
    assert [launch.run.id for launch in rig.executor.started] == [run.id for run in runs]


def test_what_waits_when_the_pause_begins_is_not_claimed(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "1 8 * * *", "overlap": "queue", "retries": ["1m"]}}))
    rig.tick(minutes=1)
    rig.finish(failed())
    (first,) = rig.runs("a")
    queued, _ = rig.desk.run_now("a", author="me", payload=1, has_payload=True, cause=Cause.API)
    rig.desk.pause(["a"], until=None, reason="", author="me")
    rig.tick(minutes=2)
    assert rig.executor.live == {}
    rig.desk.resume(["a"], author="me")
    rig.tick()
    rig.finish()
    rig.finish()
    assert {rig.run(one.id).status for one in (first, queued)} == {Status.COMPLETED}


def test_running_runs_go_on_and_run_now_works_while_paused(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}}))
    rig.tick(minutes=1)
    rig.desk.pause(["a"], until=None, reason="", author="me")
    rig.tick(minutes=1)
    assert rig.statuses("a") == ["RUNNING"]
    rig.finish()
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    assert rig.run(run.id).status is Status.RUNNING
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"] * 2


def test_several_jobs_at_once_and_a_pause_that_replaces_another(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * *"}, "b": {"schedule": "* * * * *"}}))
    rig.desk.pause(["a", "b"], until=at(8, 3), reason="one", author="me")
    rig.tick(minutes=1)
    rig.desk.pause(["a"], until=None, reason="two", author="me")
    rig.tick(minutes=4)
    assert [(skip.reason, skip.count) for skip in rig.skips("a")] == [("paused", 5)]
    assert [(skip.reason, skip.count) for skip in rig.skips("b")] == [("paused", 2), ("missed", 2)]
    assert rig.desk.resume(["a", "b"], author="me") == ["a"]


def test_a_pause_in_the_past_is_refused(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}))
    with pytest.raises(Refused, match="would end before it begins"):
        rig.desk.pause(["a"], until=START - timedelta(seconds=1), reason="", author="me")


def test_blackouts_skip_instants_and_let_running_runs_go_on(store: SqlStore) -> None:
    blackouts = [
        {"from": "2026-03-02 08:02", "to": "2026-03-02 08:04", "reason": "backup"},
        {"schedule": "*/10 * * * *", "for": "2m", "reason": "rush"},
    ]
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": "allow", "blackouts": blackouts}}))
    for _ in range(13):
        rig.tick(minutes=1)
    assert instants(rig.runs("a")) == [at(8, minute) for minute in (4, 5, 6, 7, 8, 9, 12, 13)]
    assert [(skip.reason, skip.count) for skip in rig.skips("a")] == [("blackout", 3), ("blackout", 2)]
    assert {run.status for run in rig.runs("a")} == {Status.RUNNING}
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []


def test_run_now_takes_the_lock_also_while_paused(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * *"}}))
    rig.tick(minutes=1)
    rig.desk.pause(["a"], until=None, reason="", author="me")
    with pytest.raises(Refused, match="unfinished run"):
        rig.desk.run_now("a", author="me")
    run, _ = rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    assert rig.run(run.id).status is Status.PENDING
    rig.finish()
    assert rig.run(run.id).status is Status.RUNNING


def test_a_disabled_job_runs_by_hand_only(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * *", "enabled": False}}))
    rig.tick(minutes=5)
    assert rig.runs("a") == []
    assert rig.skips("a") == []
    rig.desk.run_now("a", author="me")
    rig.tick()
    assert rig.statuses("a") == ["RUNNING"]
