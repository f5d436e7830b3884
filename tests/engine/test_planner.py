"""The planner, tick by tick: what becomes of each instant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.core.commands import IfBusy
from scheduler.core.model import Cause, Status
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.rig import START, Rig, at, canceled, failed, instants, jobs


def test_an_occurrence_is_planned_claimed_and_started_in_the_tick_in_which_it_falls_due(store: SqlStore) -> None:
    """C17, G1: on the grid of its schedule, whatever the work takes."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}}))
    rig.turn(minutes=1)
    rig.plan()
    assert len(rig.executor.started) == 1
    (run,) = rig.runs("a")
    assert (run.status, run.cause, run.scheduled_for) == (Status.RUNNING, Cause.SCHEDULE, at(8, 1))
    rig.finish()
    for _ in range(3):
        rig.tick(seconds=60.006)
        rig.finish()
    assert instants(rig.runs("a")) == [at(8, 1), at(8, 2), at(8, 3), at(8, 4)]
    assert rig.statuses("a") == ["COMPLETED"] * 4


def test_two_seconds_late_is_late_not_missed(sqlite: SqlStore) -> None:
    """C01"""
    rig = Rig(sqlite, jobs({"a": {"schedule": "0 9 * * *", "catch_up": "none"}}))
    rig.tick(hours=1, seconds=1.8)
    (run,) = rig.runs("a")
    assert (run.cause, run.scheduled_for) == (Cause.SCHEDULE, at(9))
    assert rig.skipped("a") == []


def test_woken_early_nothing_happens_and_the_instant_runs_once(sqlite: SqlStore) -> None:
    """C08, C20: the next instant follows from the instant, not from the moment of waking."""
    rig = Rig(sqlite, jobs({"a": {"schedule": "45 8 * * *"}}))
    rig.turn(minutes=44, seconds=59.997)
    rig.tick()
    assert rig.runs("a") == []
    rig.tick(seconds=0.003)
    assert len(rig.runs("a")) == 1
    rig.tick(seconds=0.003)
    rig.tick()
    assert len(rig.runs("a")) == 1
    assert rig.state("a").next_due_at == at(8, 45, day=3)


def test_overlap_skip(store: SqlStore) -> None:
    """C10: skips what falls due while a run is unfinished, and never starts it late."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}}))
    rig.tick(minutes=1)
    (blocker,) = rig.executor.live
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    rig.turn(seconds=30)
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"]
    rig.tick(seconds=30)
    assert instants(rig.runs("a")) == [at(8, 1), at(8, 4)]
    (skip,) = rig.skips("a")
    assert (skip.reason, skip.first, skip.last, skip.count) == ("overlap", at(8, 2), at(8, 3), 2)
    assert skip.blocked_by == blocker
    assert len(rig.named("run.skipped")) == 2


def test_overlap_skip_looks_at_runs_that_wait_for_a_retry(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * *", "retries": ["5m"]}}))
    rig.tick(minutes=1)
    rig.executor.finish_all(failed())
    rig.tick(minutes=1)
    assert rig.skipped("a") == [("overlap", at(8, 2), at(8, 2), 1)]


def test_overlap_queue_lets_one_wait(store: SqlStore) -> None:
    """C11: the second starts when the first ends, at most one is waiting."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": "queue"}}))
    for _ in range(4):
        rig.tick(minutes=1)
    assert rig.statuses("a") == ["RUNNING", "PENDING"]
    assert rig.skipped("a") == [("overlap", at(8, 3), at(8, 4), 2)]
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED", "RUNNING"]
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []


def test_overlap_replace_cancels_and_starts_when_the_old_one_is_gone(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": "replace"}}))
    rig.executor.obedient = False
    rig.tick(minutes=1)
    (old,) = rig.executor.live
    rig.tick(minutes=1)
    assert rig.executor.ended == [(old, "cancel")]
    assert rig.statuses("a") == ["RUNNING", "PENDING"]
    rig.tick(minutes=1)
    assert rig.statuses("a") == ["RUNNING", "CANCELED", "PENDING"]
    rig.finish(canceled())
    assert rig.statuses("a") == ["CANCELED", "CANCELED", "RUNNING"]


def test_overlap_allow_runs_side_by_side(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": "allow"}}))
    for _ in range(3):
        rig.tick(minutes=1)
    assert rig.statuses("a") == ["RUNNING"] * 3


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_runs_of_other_causes_are_never_skipped_replaced_or_cancelled(store: SqlStore, overlap: str) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "overlap": overlap}}))
    manual, _ = rig.desk.run_now("a", author="me", payload={"n": 1}, has_payload=True)
    queued, _ = rig.desk.run_now("a", author="me", payload={"n": 2}, has_payload=True)
    rig.tick()
    for _ in range(3):
        rig.tick(minutes=1)
    assert rig.run(manual.id).status is Status.RUNNING
    assert rig.run(queued.id).status is Status.PENDING
    rig.finish()
    assert rig.run(queued.id).status is Status.RUNNING
    rig.finish()
    assert rig.run(queued.id).status is Status.COMPLETED


def test_several_instants_within_one_tick(sqlite: SqlStore) -> None:
    """The newest is due now; those before it are missed, whatever their age."""
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * * *"}, "b": {"schedule": "* * * * * *", "catch_up": "all"}}))
    rig.tick(seconds=4)
    assert [(run.cause, run.scheduled_for) for run in rig.runs("a")] == [(Cause.SCHEDULE, at(8, 0, 4))]
    assert rig.skipped("a") == [("missed", at(8, 0, 1), at(8, 0, 3), 3)]
    assert instants(rig.runs("b")) == [at(8, 0, s) for s in (1, 2, 3, 4)]
    assert [run.cause for run in rig.runs("b")] == [*[Cause.CATCH_UP] * 3, Cause.SCHEDULE]
    assert rig.statuses("b") == ["RUNNING", *["PENDING"] * 3]
    for job in ("a", "b"):
        assert list(faults(rig.store, job, "* * * * * *", START, rig.clock.now())) == []


def test_nothing_is_claimed_when_the_worker_has_no_slot(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "* * * * *"}, "b": {"schedule": "* * * * *"}}), slots=1)
    rig.tick(minutes=1)
    assert sorted(rig.statuses()) == ["PENDING", "RUNNING"]
    rig.turn(minutes=1)
    rig.plan()
    assert sorted(rig.statuses()) == ["PENDING", "RUNNING"]
    rig.finish()
    assert sorted(rig.statuses()) == ["COMPLETED", "RUNNING"]


def test_a_node_that_is_not_live_neither_plans_nor_claims(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}}))
    with rig.store.begin() as tx:
        tx.nodes.mark(rig.node, "stopping", rig.store.now())
    rig.tick(minutes=1)
    assert rig.runs("a") == []
    assert rig.state("a").next_due_at == at(8, 1)


def test_an_instant_that_somebody_wrote_first_changes_nothing(store: SqlStore) -> None:
    """A node that died between its rows and its move of next_due_at would leave exactly this."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}, "b": {"schedule": "* * * * *"}}))
    rig.tick(minutes=1)
    rig.finish()
    with rig.store.begin() as tx:
        state = tx.jobs.states(["a"])["a"]
        tx.jobs.put([(replace(state, next_due_at=at(8, 1)), "{}")])
    rig.tick(minutes=1)
    assert instants(rig.runs("a")) == instants(rig.runs("b")) == [at(8, 1), at(8, 2)]
    assert rig.named("job.disabled") == []


def test_run_now_consumes_no_occurrence(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "0 * * * *", "overlap": "queue"}}))
    run, new = rig.desk.run_now("a", author="me", if_busy=IfBusy.QUEUE)
    rig.tick()
    assert new
    assert rig.run(run.id).status is Status.RUNNING
    assert rig.state("a").next_due_at == at(9)
    rig.tick(hours=1)
    assert rig.statuses("a") == ["RUNNING", "PENDING"]
