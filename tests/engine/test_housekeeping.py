"""Retention, and the invariants that are watched from outside the loops."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from scheduler.core.model import Status
from scheduler.engine import retention
from scheduler.engine.retention import Retention
from scheduler.store import tables as t
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig, at, failed, instants, jobs
from tests.engine.senders import event, kept, subscribed, told

DAILY = {"schedule": "0 9 * * *"}


def days(rig: Rig, count: int) -> None:
    for _ in range(count):
        rig.tick(days=1)
        rig.finish()


def test_runs_are_kept_as_long_as_their_job_says(store: SqlStore) -> None:
    rig = Rig(store, jobs({"short": {**DAILY, "keep": "3d"}, "long": DAILY, "counted": {**DAILY, "keep": 2}}))
    rig.turn(hours=1)
    rig.tick()
    rig.finish()
    days(rig, 6)
    removed = rig.retention.tick(rig.store.now())
    assert removed == 4 - 1 + 5
    assert instants(rig.runs("short")) == [at(9, day=day) for day in (5, 6, 7, 8)]
    assert len(rig.runs("long")) == 7
    assert len(rig.runs("counted")) == 2
    assert rig.named("retention.pruned") == [{"rows": removed}]
    assert rig.audit(START).clean
    rig.turn(minutes=2)
    (one,) = rig.audit(START, "short").jobs
    assert (one.expected, one.ran) == (4, 4)


def test_it_looks_every_five_minutes_whichever_way_the_clock_is_set(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {**DAILY, "keep": "1d"}}))
    days(rig, 4)
    assert rig.retention.tick(rig.store.now()) > 0
    days(rig, 1)
    rig.clock.step(days=-1)
    assert rig.retention.tick(rig.store.now() - timedelta(days=1)) == 0
    assert rig.retention._last == rig.store.now() - timedelta(days=1)


def test_dead_letters_unfinished_runs_and_the_last_ends_stay(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {**DAILY, "keep": "1d", "retries": 0, "overlap": "allow"}}))
    rig.desk.run_now("a", author="me", payload=1, has_payload=True)
    rig.tick()
    rig.executor.finish_all(failed())
    rig.tick()
    rig.desk.run_now("a", author="me", payload=2, has_payload=True)
    rig.tick()
    rig.turn(days=40)
    rig.retention.tick(rig.store.now())
    assert rig.statuses("a") == ["FAILED", "RUNNING"]


def test_removed_and_paused_jobs_are_tidied_too(store: SqlStore) -> None:
    rig = Rig(store, jobs({"gone": {**DAILY, "keep": "400d"}, "paused": {**DAILY, "keep": "1d"}}))
    days(rig, 3)
    rig.desk.pause(["paused"], until=None, reason="", author="me")
    rig.reload(jobs({"paused": {**DAILY, "keep": "1d"}}), drop_pending=True)
    rig.turn(days=100)
    assert rig.retention.tick(rig.store.now()) > 0
    assert len(rig.runs("gone")) == len(rig.runs("paused")) == 1, "the last success stays"


def test_many_jobs_are_looked_at_in_rotation(sqlite: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "JOBS", 2)
    monkeypatch.setattr(retention, "ROWS", 2)
    rig = Rig(sqlite, jobs({f"j{number}": {**DAILY, "keep": 1} for number in range(5)}))
    days(rig, 6)
    removed = [rig.retention.tick(rig.turn(minutes=5)) for _ in range(3)]
    assert removed == [10, 10, 5]


def test_nodes_that_left_a_week_ago_are_forgotten(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    rig.drain.begin()
    rig.drain.finish()
    following = Rig(sqlite, jobs(), rig.clock)
    following.turn(days=8)
    following.retention.tick(following.store.now())
    with following.store.read() as tx:
        assert [node.id for node in tx.nodes.all()] == [following.node]


# ------------------------------------------------------------ invariants


def broken(rig: Rig) -> dict[str, str]:
    rig.invariants.tick(rig.turn(seconds=5))
    return dict(rig.invariants.broken)


def test_a_healthy_node_breaks_none(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}, "b": {"overlap": "queue"}}))
    for number in range(50):
        rig.desk.run_now("b", author="me", payload=number, has_payload=True)
    for _ in range(30):
        rig.tick(seconds=5)
        assert broken(rig) == {}
        rig.executor.finish_all()


def test_a_planner_that_stands_still(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}, "b": {"schedule": "* * * * *", "enabled": False}}))
    rig.turn(minutes=2, seconds=1)
    assert broken(rig) == {}  # As after a downtime: the planner has not had its chance.
    assert broken(rig) == {}
    assert broken(rig) == {"overdue": "1 job(s) are due for more than a minute and not planned: a"}
    rig.tick()
    assert broken(rig) == {}
    assert [notice["invariant"] for notice in rig.named("invariant.broken")] == ["overdue"]


def test_a_run_without_a_live_node(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    with rig.store.begin() as tx:
        tx.nodes.mark(rig.node, "stopped", rig.store.now())
    assert set(broken(rig)) == {"orphan"}


def test_a_queue_that_no_node_serves(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"queue": "q"}}, queues={"q": {}}), queues=("default",))
    rig.desk.run_now("a", author="me")
    rig.tick()
    assert broken(rig) == {"unserved_queue": "no node serves queue q, and runs wait in it"}


def test_a_queue_that_has_room_and_does_not_move(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {}}))
    rig.desk.run_now("a", author="me")
    for _ in range(12):
        assert broken(rig) == {}
    rig.turn(seconds=5)
    assert set(broken(rig)) == {"stuck_queue"}
    rig.tick()
    assert broken(rig) == {}


def test_a_run_that_waited_for_its_lock_or_its_retry_is_not_stuck_when_its_turn_comes(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"overlap": "queue", "retries": ["10m"]}}))
    for number in range(3):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    rig.tick(minutes=20)
    rig.executor.finish_all()
    rig.worker.accepting = False
    rig.worker.tick(rig.store.now())
    assert [run.status for run in rig.runs("a")][1] is Status.PENDING
    assert broken(rig) == {}


def test_nodes_with_different_configurations(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": {}}))
    two = Rig(store, one.text, one.clock, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    one.turn(minutes=2)
    with one.store.begin() as tx:
        tx.runs.session.write(update(t.nodes).where(t.nodes.c.id == two.node).values(generation=7))
    assert set(broken(one)) == {"generations"}


def test_events_are_kept_as_long_as_their_source_says(store: SqlStore) -> None:
    """Those that still have something to do stay. After their source is gone from the file they are kept as before."""
    rig = Rig(store, subscribed({"ticket": {"retries": 0}}, payments={"keep": "3d"}, other={"keep": "9d"}))
    told(rig, event("done"), event("failed"), event("other", source="other"))
    rig.tick()
    by_event = {rig.run(run).payload["event"]["id"]: run for run in rig.executor.live}
    rig.executor.finish(by_event["done"])
    rig.finish(failed())
    told(rig, event("waits"), event("young", received_at=rig.turn(days=2)))
    rig.turn(days=2)
    rig.retention.tick(rig.clock.now())
    assert [kept(rig, one) is not None for one in ("done", "failed", "waits", "young")] == [False, True, True, True]
    assert kept(rig, "other", "other") is not None
    rig.reload(subscribed({"ticket": {"retries": 0}}))
    again = Retention(rig.store, rig.in_force, rig.bus)  # of another daemon, which never knew the source
    again.tick(rig.turn(days=4))
    assert kept(rig, "other", "other") is not None
    again.tick(rig.turn(days=2))
    assert kept(rig, "other", "other") is None


def test_of_a_source_about_which_nothing_is_known_they_are_kept_for_a_while(store: SqlStore) -> None:
    rig = Rig(store, subscribed({}, other={"keep": "9d"}))
    told(rig, event("old", source="other"))
    rig.reload(subscribed({}))
    for days, there in ((44, True), (2, False)):
        rig.retention.tick(rig.turn(days=days))
        assert (kept(rig, "old", "other") is not None) is there
