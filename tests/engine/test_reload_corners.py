"""Reload in odd moments: many at once, without a database, with a clock that was set, with runs that wait."""

from __future__ import annotations

import threading

import pytest

from scheduler.core.commands import Reloaded
from scheduler.core.errors import Unavailable
from scheduler.core.job import Configuration
from scheduler.core.model import Cause, Status
from scheduler.store.store import SqlStore
from tests.engine.rig import START, Rig, at, failed, instants, jobs

MINUTELY = {"schedule": "* * * * *"}


def test_many_who_reload_at_once_share_a_load_that_began_after_they_asked(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.text = jobs({"a": MINUTELY, "b": {}})
    loads: list[int] = []
    load = rig.reloader._load
    gate = threading.Barrier(30)

    def counted() -> Configuration:
        loads.append(1)
        return load()

    rig.reloader._load = counted
    answers: list[Reloaded] = []

    def ask() -> None:
        gate.wait(20)
        answers.append(rig.desk.reload(author="me"))

    threads = [threading.Thread(target=ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 30
    assert {answer.generation for answer in answers} == {2}
    assert len(loads) < 30
    with rig.store.read() as tx:
        assert tx.generations.newest_id() == 2


def test_a_broken_database_leaves_the_old_configuration_in_force(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.store.broken_commits = 1
    with pytest.raises(Unavailable):
        rig.reload(jobs({"b": MINUTELY}))
    assert rig.in_force.job("a") is not None
    rig.tick(minutes=1)
    assert [run.job for run in rig.runs()] == ["a"]


def test_after_a_lost_answer_the_node_follows_what_it_put_in_force(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY}))
    rig.store.lost_answers = 1
    with pytest.raises(Unavailable):
        rig.reload(jobs({"b": MINUTELY}))
    rig.tick(minutes=1)
    assert [run.job for run in rig.runs()] == ["b"]


def test_an_instant_planned_by_a_clock_ahead_of_the_reload_is_not_planned_again(store: SqlStore) -> None:
    """The planner may have read the clock later than the reload did, or the clock was set back in between."""
    rig = Rig(store, jobs({"a": {"schedule": "*/10 * * * *"}, "b": {"schedule": "*/10 * * * *"}}))
    rig.tick(minutes=10)
    rig.tick(minutes=10)
    rig.clock.step(minutes=-15)
    rig.reload(jobs({"a": {"schedule": "*/5 * * * *"}}), drop_pending=True)
    assert rig.state("a").next_due_at == at(8, 25)
    for _ in range(8):
        rig.tick(minutes=5)
    rig.turn(minutes=2)
    assert instants(rig.runs("a")) == [at(8, 10)]
    assert [(skip.first, skip.last, skip.count) for skip in rig.skips("a")] == [(at(8, 20), at(8, 45), 6)]
    assert rig.audit(START).clean


def test_waiting_runs_follow_the_new_definition(store: SqlStore) -> None:
    """An attempt starts under the definition in force then: its lock, its queue and its priority, too."""
    rig = Rig(store, jobs({"a": {}, "b": {"lock": "shared"}, "c": {"queue": "q"}}, queues={"q": {"concurrency": 1}}))
    rig.worker.accepting = False
    for number in range(5):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.reload(jobs({"a": {"lock": "shared", "priority": 7}, "b": {"lock": "shared"}}))
    assert {(run.queue, run.priority, run.lock) for run in rig.runs("a")} == {("default", 7, "lock:shared")}
    rig.worker.accepting = True
    rig.desk.run_now("b", author="me")
    for _ in range(3):
        rig.tick()
        assert len(rig.executor.live) == 1
        rig.executor.finish_all()
    rig.tick()
    rig.reload(jobs({"a": {"queue": "q"}, "b": {}}, queues={"q": {"concurrency": 1}}))
    assert [run.lock for run in rig.runs("a") if run.status is Status.PENDING] == [None]
    rig.tick()
    assert len(rig.executor.live) == 3
    rig.finish()
    rig.finish()
    assert rig.statuses("a") == ["COMPLETED"] * 5
    assert rig.statuses("b") == ["COMPLETED"]


def test_runs_that_wait_for_time_or_pause_go_on_doing_so(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["1h"]}, "b": {}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish(failed())
    rig.desk.pause(["b"], until=None, reason="", author="me")
    rig.desk.run_now("b", author="me", cause=Cause.API)
    rig.tick()
    before = [run.waits_for for run in rig.runs()]
    rig.reload(jobs({"a": {"retries": ["1h"], "overlap": "queue"}, "b": {"overlap": "queue"}}))
    assert [run.waits_for for run in rig.runs()] == before
    rig.desk.resume(["b"], author="me")
    rig.tick(hours=2)
    assert len(rig.executor.live) == 2


@pytest.mark.parametrize("away", ["removed", "disabled"])
def test_a_job_that_comes_back_while_the_clock_is_set_back(store: SqlStore, away: str) -> None:
    """No two versions of its schedule rule at once."""
    entry = {"schedule": "* * * * *", "overlap": "allow"}
    rig = Rig(store, jobs({"a": entry}))
    for _ in range(5):
        rig.tick(minutes=1)
        rig.finish()
    rig.clock.step(minutes=-3)
    rig.reload(jobs({} if away == "removed" else {"a": {**entry, "enabled": False}}))
    rig.reload(jobs({"a": {**entry, "schedule": "*/2 * * * *"}}))
    assert rig.state("a").next_due_at == at(8, 6)
    for _ in range(6):
        rig.tick(minutes=1)
        rig.finish()
    rig.turn(minutes=1, seconds=30)
    assert instants(rig.runs("a")) == [at(8, minute) for minute in (1, 2, 3, 4, 5, 6, 8)]
    assert rig.audit(START).clean


def test_queues_are_part_of_the_configuration(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"queue": "q"}}, queues={"q": {"concurrency": 1}}))
    for number in range(4):
        rig.desk.run_now("a", author="me", payload=number, has_payload=True)
    rig.tick()
    assert len(rig.executor.live) == 1
    rig.reload(jobs({"a": {"queue": "q"}}, queues={"q": {"concurrency": 3}}))
    rig.tick()
    assert len(rig.executor.live) == 3
    rig.reload(jobs({"a": {}}))
    rig.tick()
    assert len(rig.executor.live) == 4
