"""Locks that several jobs share, and what waits for them."""

from __future__ import annotations

from scheduler.core.commands import IfBusy
from scheduler.core.model import Status, WaitsFor
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.rig import START, Rig, at, failed, jobs


def test_a_lock_held_by_another_job_makes_a_run_wait_and_is_told(store: SqlStore) -> None:
    """D23: it waits its turn; it is not skipped while it may still run before its next instant."""
    rig = Rig(store, jobs({"a": {"lock": "shared"}, "b": {"lock": "shared"}}))
    first, _ = rig.desk.run_now("a", author="me")
    second, _ = rig.desk.run_now("b", author="me")
    rig.tick()
    waiting = rig.detail(second.id).waiting
    assert waiting is not None
    assert (waiting.kind, waiting.lock, waiting.holder_run) == ("lock", "lock:shared", first.id)
    assert rig.run(second.id).waits_for is WaitsFor.LOCK
    rig.finish()
    assert rig.run(second.id).status is Status.RUNNING


def test_an_occurrence_waits_for_the_lock_until_the_next_one(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"lock": "shared"}, "b": {"lock": "shared", "schedule": "*/10 * * * *"}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.tick(minutes=10)
    assert rig.statuses("b") == ["PENDING"]
    rig.tick(minutes=10)
    assert rig.statuses("b") == ["SKIPPED", "PENDING"]
    assert rig.skipped("b") == [("lock", at(8, 10), at(8, 10), 1)]
    rig.tick(minutes=10)
    assert rig.statuses("b") == ["SKIPPED", "SKIPPED", "PENDING"]
    rig.finish()
    assert rig.statuses("b") == ["SKIPPED", "SKIPPED", "RUNNING"]
    assert list(faults(rig.store, "b", "*/10 * * * *", START, rig.clock.now())) == []


def test_runs_of_other_causes_wait_however_long(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"lock": "shared"}, "b": {"lock": "shared", "schedule": "*/10 * * * *"}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    payload, _ = rig.desk.run_now("b", author="me", payload=1, has_payload=True)
    for _ in range(5):
        rig.tick(minutes=10)
    assert rig.run(payload.id).status is Status.PENDING
    rig.finish()
    assert rig.run(payload.id).status is Status.RUNNING


def test_the_oldest_waiter_of_a_shared_lock_is_next(store: SqlStore) -> None:
    names = ["a", "b", "c", "d"]
    rig = Rig(store, jobs({name: {"lock": "shared"} for name in names}))
    for name in names:
        rig.desk.run_now(name, author="me")
        rig.tick(seconds=1)
    for name in ("c", "b"):
        rig.desk.run_now(name, author="me", if_busy=IfBusy.QUEUE)
    for _ in range(6):
        rig.finish()
    assert [launch.job.name for launch in rig.executor.started] == [*names, "c", "b"]


def test_a_failed_holder_lets_the_next_one_go_while_it_waits_for_its_retry(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"lock": "shared", "retries": ["1m"]}, "b": {"lock": "shared"}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.desk.run_now("b", author="me")
    rig.finish(failed())
    rig.tick()
    assert rig.executor.of("b")
    rig.tick(seconds=70)
    assert rig.statuses("a") == ["PENDING"]
    rig.finish()
    assert rig.executor.of("a")


def test_locks_are_names_not_numbers(sqlite: SqlStore) -> None:
    """D13, D14: two names that share their CRC-32 or their hash do not share a lock."""
    names = ["orders-delta-sync-297", "index-gamma-backup-512", "orders-beta-342", "cache-gamma-982"]
    rig = Rig(sqlite, jobs({name: {"lock": name} for name in names}))
    for name in names:
        rig.desk.run_now(name, author="me")
    rig.tick()
    assert len(rig.executor.live) == 4


def test_a_lock_of_a_name_and_the_own_lock_of_a_job_are_two_things(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"overlap": "queue"}, "b": {"lock": "a"}}))
    rig.desk.run_now("a", author="me")
    rig.desk.run_now("b", author="me")
    rig.tick()
    assert len(rig.executor.live) == 2


def test_fences_only_grow_also_when_the_clock_is_set_back(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"lock": "shared"}}))
    fences = []
    for _ in range(4):
        rig.desk.run_now("a", author="me")
        rig.tick()
        fences.append(rig.executor.started[-1].run.fence)
        rig.finish()
        rig.clock.step(hours=-1)
    assert fences == sorted(set(fences))


def test_without_a_lock_runs_do_not_wait(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}))
    for number in range(5):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    assert len(rig.executor.live) == 5
