"""A job that is given another lock while it runs: its next run waits for the end of what started under the old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.core.commands import IfBusy
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.doubles import START, TurnedClock
from tests.engine.rig import Rig, failed, jobs

QUEUE = {"overlap": "queue"}
SHARED = {"overlap": "queue", "lock": "db"}
ALLOW = {"overlap": "allow"}
MINUTELY = {"schedule": "* * * * *"}


def _ask(rig: Rig, job: str = "a", count: int = 1) -> list[str]:
    """Waiting runs of a job, oldest first."""
    return [rig.desk.run_now(job, author="me", if_busy=IfBusy.QUEUE)[0].id for _ in range(count)]


@pytest.mark.parametrize(("before", "after"), [(QUEUE, SHARED), (SHARED, QUEUE), (SHARED, {**SHARED, "lock": "disk"})])
def test_runs_of_a_job_whose_lock_changes_do_not_overlap(
    store: SqlStore, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    rig = Rig(store, jobs({"a": before}))
    runs = _ask(rig, count=3)
    rig.tick()
    rig.reload(jobs({"a": after}))
    runs += _ask(rig)
    for run in runs:
        for _ in range(3):
            rig.tick(seconds=1)
            assert list(rig.executor.live) == [run]
        rig.finish()
    assert rig.statuses("a") == ["COMPLETED"] * 4


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_occurrences_of_a_job_whose_lock_changes_do_not_overlap(store: SqlStore, overlap: str) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "overlap": overlap}}))
    rig.executor.obedient = False
    rig.tick(minutes=1)
    (first,) = rig.executor.live
    rig.reload(jobs({"a": {**MINUTELY, "overlap": overlap, "lock": "db"}}))
    asked = _ask(rig)
    for _ in range(3):
        rig.tick(minutes=1)
        assert list(rig.executor.live) == [first]
    rig.finish()
    rig.tick()
    assert list(rig.executor.live) == asked
    assert list(faults(rig.store, "a", "* * * * *", START, rig.clock.now())) == []


def test_a_new_lock_that_another_job_holds_does_not_end_the_wait(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": QUEUE, "b": SHARED}))
    (_, waiting), (holder,) = _ask(rig, count=2), _ask(rig, "b")
    rig.tick()
    rig.reload(jobs({"a": SHARED, "b": SHARED}))
    rig.tick(seconds=1)
    rig.executor.finish(holder)
    rig.tick(seconds=1)
    rig.tick(seconds=1)
    assert len(rig.executor.of("a")) == 1
    rig.finish()
    rig.tick(seconds=1)
    assert list(rig.executor.live) == [waiting]


def test_who_shares_the_new_lock_waits_behind_who_waits_for_both(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": QUEUE, "b": SHARED}))
    first, second = _ask(rig, count=2)
    rig.tick()
    rig.reload(jobs({"a": SHARED, "b": SHARED}))
    (other,) = _ask(rig, "b")
    rig.tick(seconds=1)
    assert list(rig.executor.live) == [first]
    for run in (second, other):
        rig.finish()
        rig.tick(seconds=1)
        assert list(rig.executor.live) == [run]


@pytest.mark.parametrize("after", [QUEUE, SHARED, {**MINUTELY, "overlap": "skip"}])
def test_what_may_overlap_no_longer_waits_for_all_that_did(store: SqlStore, after: Mapping[str, Any]) -> None:
    rig = Rig(store, jobs({"a": ALLOW}))
    running = _ask(rig, count=3)
    rig.tick()
    rig.reload(jobs({"a": after}))
    asked = _ask(rig)
    for run in running:
        rig.tick(seconds=1)
        assert not {*asked} & {*rig.executor.live}
        rig.executor.finish(run)
    rig.tick(seconds=1)
    assert list(rig.executor.live) == asked


def test_what_may_overlap_now_waits_for_nothing(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": QUEUE}))
    _ask(rig, count=3)
    rig.tick()
    rig.reload(jobs({"a": ALLOW}))
    rig.tick(seconds=1)
    assert len(rig.executor.live) == 3


@pytest.mark.parametrize(("before", "after"), [(QUEUE, SHARED), (SHARED, QUEUE), (ALLOW, QUEUE), (ALLOW, SHARED)])
@pytest.mark.parametrize("wait", ["0s", "5s"])
def test_a_further_attempt_needs_the_lock_that_its_job_has_by_then(
    store: SqlStore, before: Mapping[str, Any], after: Mapping[str, Any], wait: str
) -> None:
    rig = Rig(store, jobs({"a": {**before, "retries": [wait]}}, queues={"q": {}}))
    _ask(rig)
    rig.tick()
    rig.reload(jobs({"a": {**after, "retries": [wait], "queue": "q", "priority": 7}}, queues={"q": {}}))
    _ask(rig, count=2)
    rig.finish(failed())
    needed = {(run.queue, run.priority, run.lock) for run in rig.runs("a")}
    assert needed == {("q", 7, "lock:db" if "lock" in after else "job:a")}
    for _ in range(3):
        for _ in range(10):
            rig.tick(seconds=1)
            assert len(rig.executor.live) == 1
        rig.finish()
    assert rig.statuses("a") == ["COMPLETED"] * 3


def test_a_further_attempt_of_what_may_overlap_by_then_needs_no_lock(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**QUEUE, "retries": ["0s"]}}))
    _ask(rig)
    rig.tick()
    rig.reload(jobs({"a": {**ALLOW, "retries": ["0s"]}}))
    _ask(rig)
    rig.finish(failed())
    rig.tick(seconds=1)
    assert len(rig.executor.live) == 2


def test_on_another_node_it_waits_as_well(postgres: SqlStore) -> None:
    clock = TurnedClock()
    one = Rig(postgres, jobs({"a": QUEUE}), clock)
    _ask(one, count=2)
    one.tick()
    one.reload(jobs({"a": SHARED}))
    other = Rig(postgres, jobs({"a": SHARED}), clock)
    for _ in range(3):
        other.tick(seconds=1)
        assert (len(one.executor.live), len(other.executor.live)) == (1, 0)
    one.worker.accepting = False
    one.finish()
    other.tick(seconds=1)
    assert (len(one.executor.live), len(other.executor.live)) == (0, 1)
