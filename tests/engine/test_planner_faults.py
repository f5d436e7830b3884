"""The planner among faults: bad jobs, other planners, a database that breaks."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import update

from scheduler.core import policy
from scheduler.core.errors import Unavailable
from scheduler.core.job import Job
from scheduler.core.policy import Plan
from scheduler.core.requests import Due
from scheduler.engine import planner
from scheduler.engine.in_force import Loaded
from scheduler.store import tables as t
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.rig import START, Rig, at, instants, jobs

MINUTELY = {"schedule": "* * * * *"}


def break_policy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def plan(job: Job, due: Due, now: datetime) -> Plan:
        if job.name == name:
            raise ZeroDivisionError("division by zero")
        return policy.plan(job, due, now)

    monkeypatch.setattr(planner, "plan", plan)


def test_a_job_whose_planning_raises_is_disabled_with_an_alarm_and_the_others_go_on(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "bad": MINUTELY, "c": MINUTELY}))
    break_policy(monkeypatch, "bad")
    rig.tick(minutes=1)
    assert sorted(run.job for run in rig.runs()) == ["a", "c"]
    assert len(rig.executor.live) == 2
    state = rig.state("bad")
    assert (state.enabled, state.next_due_at) == (False, at(8, 1))
    assert state.alarm == "planning failed: ZeroDivisionError: division by zero"
    (notice,) = rig.named("job.disabled")
    assert notice["job"] == "bad"
    rig.finish()
    rig.tick(minutes=1)
    assert len(rig.runs()) == 4
    assert len(rig.named("job.disabled")) == 1
    monkeypatch.undo()
    rig.reload(rig.text)
    rig.tick()
    assert instants(rig.runs("bad")) == [at(8, 2)]
    assert rig.skipped("bad") == [("missed", at(8, 1), at(8, 1), 1)]


def test_an_insert_that_fails_disables_its_job_only(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "bad": MINUTELY}))
    written = planner.write_entries

    def write(tx: Any, plans: list[tuple[Job, Due, Plan]], now: datetime) -> None:
        written(tx, plans, now)
        if any(job.name == "bad" for job, _, _ in plans):
            tx.runs.insert([planner.occurrence(None, None, now)])  # type: ignore[arg-type]

    monkeypatch.setattr(planner, "write_entries", write)
    rig.tick(minutes=1)
    assert [run.job for run in rig.runs()] == ["a"]
    assert rig.state("bad").alarm is not None


def test_a_bad_job_in_a_large_batch_stops_no_other(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches grow while all goes well; after one that failed the turn goes on with small ones."""
    good = [f"job-{number:02}" for number in range(19)]
    rig = Rig(store, jobs(dict.fromkeys([*good, "worst"], MINUTELY)))
    monkeypatch.setattr(planner, "BATCH", 2)
    written, sizes = planner.write_entries, []

    def write(tx: Any, plans: list[tuple[Job, Due, Plan]], now: datetime) -> None:
        sizes.append(len(plans))
        written(tx, plans, now)
        if any(job.name == "worst" for job, _, _ in plans):
            raise RuntimeError("nobody can write this")

    monkeypatch.setattr(planner, "write_entries", write)
    rig.turn(minutes=1)
    assert rig.planner.tick(rig.store.now()) == 20
    assert sorted(run.job for run in rig.runs()) == good
    assert rig.state("worst").alarm is not None
    assert max(sizes) == 8


def test_a_broken_claim_costs_no_job_its_schedule(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning is done again without it, and the worker claims later."""
    rig = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    monkeypatch.setattr(rig.planner, "_claim", lambda: 1 / 0)
    rig.turn(minutes=1)
    rig.plan()
    assert rig.statuses() == ["PENDING"] * 2
    assert rig.named("job.disabled") == []
    rig.worker.tick(rig.store.now())
    assert rig.statuses() == ["RUNNING"] * 2


def test_a_job_that_was_changed_meanwhile_is_not_planned_alone(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "bad": MINUTELY}))
    break_policy(monkeypatch, "bad")
    alone = rig.planner._plan_alone

    def changed_first(name: str, loaded: Loaded, now: datetime) -> None:
        with rig.store.begin() as tx:
            tx.jobs.put([(replace(tx.jobs.states([name])[name], generation=2), "{}")])
        alone(name, loaded, now)

    monkeypatch.setattr(rig.planner, "_plan_alone", changed_first)
    rig.turn(minutes=1)
    rig.plan()
    assert rig.runs("a") == []
    assert rig.state("a").next_due_at == rig.state("bad").next_due_at == at(8, 1)
    assert rig.named("job.disabled") == []


@pytest.mark.parametrize("fault", ["away", "broken_commits"])
def test_what_a_database_outage_delays_is_not_lost(store: SqlStore, fault: str) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "catch_up": "all"}}))
    rig.turn(minutes=1)
    setattr(rig.store, fault, 1)
    with pytest.raises(Unavailable):
        rig.plan()
    setattr(rig.store, fault, 0)
    assert rig.named("run.planned") == []
    assert rig.named("job.disabled") == []
    rig.tick(minutes=4)
    for _ in range(5):
        rig.finish()
    assert instants(rig.runs("a")) == [at(8, minute) for minute in (1, 2, 3, 4, 5)]
    assert rig.statuses("a") == ["COMPLETED"] * 5


def test_a_queue_that_somebody_holds_does_not_hold_up_planning(postgres: SqlStore) -> None:
    """Its runs are planned, and claimed later."""
    entries = {"a": {**MINUTELY, "queue": "q"}, "b": MINUTELY}
    rig = Rig(postgres, jobs(entries, queues={"q": {"concurrency": 3}}))
    rig.turn(minutes=1)
    with postgres.begin() as tx:
        tx.runs.session.write(update(t.queues).where(t.queues.c.name == "q").values(burst=1))
        rig.plan()
    assert {run.job: run.status for run in rig.runs()} == {"a": "PENDING", "b": "RUNNING"}
    rig.worker.tick(rig.store.now())
    assert rig.statuses("a") == ["RUNNING"]


def test_two_planners_at_once_never_double(postgres: SqlStore) -> None:
    """D10: real threads on one database; each instant has one entry, and nobody fails."""
    names = [f"j{number}" for number in range(20)]
    text = jobs({name: {"schedule": "* * * * * *", "overlap": "allow"} for name in names})
    one = Rig(postgres, text)
    two = Rig(postgres, text, one.clock, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    errors: list[BaseException] = []

    def plan(rig: Rig, now: datetime, gate: threading.Barrier) -> None:
        try:
            gate.wait(20)
            rig.planner.tick(now)
        except BaseException as error:
            errors.append(error)

    for _ in range(10):
        now = one.clock.turn(seconds=1)
        gate = threading.Barrier(2)
        threads = [threading.Thread(target=plan, args=(rig, now, gate)) for rig in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        for rig in (one, two):
            rig.tick()
            rig.finish()
    assert errors == []
    for name in names:
        assert list(faults(one.store, name, "* * * * * *", START, one.clock.now())) == []
    started = [launch.run.id for rig in (one, two) for launch in rig.executor.started]
    assert len(started) == len(set(started)) == 200


def test_a_reload_beside_planners_loses_and_doubles_nothing(postgres: SqlStore) -> None:
    entries = {f"j{number}": {"schedule": "* * * * * *", "overlap": "allow"} for number in range(10)}
    one = Rig(postgres, jobs(entries))
    stop = threading.Event()
    errors: list[BaseException] = []
    lock = threading.Lock()

    def plan() -> None:
        while not stop.is_set():
            try:
                with lock:
                    now = one.clock.turn(seconds=0.25)
                one.planner.tick(now)
                one.keeper.tick(now)
            except BaseException as error:
                errors.append(error)
                return

    thread = threading.Thread(target=plan)
    thread.start()
    for turn in range(15):
        changed = {
            "j1": {**entries["j1"], "priority": turn},
            "j2": {**entries["j2"], "schedule": f"*/{1 + turn % 2} * * * * *"},
        }
        one.reload(jobs({**entries, **changed}))
    stop.set()
    thread.join(20)
    one.tick()
    assert errors == []
    for name in entries:
        if name != "j2":
            assert list(faults(one.store, name, "* * * * * *", START, one.clock.now())) == []
    one.turn(minutes=2)
    one.tick()
    assert one.audit(START).clean
