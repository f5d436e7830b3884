"""Clocks that are set, machines that stop: no instant twice, none unaccounted, everything else goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.model import Status
from scheduler.core.outcome import Snoozed
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.doubles import TurnedClock
from tests.engine.rig import START, Rig, at, failed, jobs

MANY = {
    "second": {"schedule": "* * * * * *"},
    "minute": {"schedule": "* * * * *", "catch_up": "all"},
    "hour": {"schedule": "0 * * * *", "catch_up": "none"},
    "queue": {"schedule": "*/5 * * * * *", "overlap": "queue"},
}


def second_by_second(rig: Rig, count: int) -> None:
    for _ in range(count):
        rig.tick(seconds=1)
        rig.finish()


@pytest.mark.parametrize("step", [-3600, 3600])
def test_no_instant_is_doubled_or_lost_when_the_clock_is_set(store: SqlStore, step: int) -> None:
    """C07: the new time counts from the next tick on."""
    set_by(store, step)


@pytest.mark.parametrize("step", [-10, 10])
def test_no_instant_is_doubled_or_lost_by_a_small_step(sqlite: SqlStore, step: int) -> None:
    set_by(sqlite, step)


def set_by(store: SqlStore, step: int) -> None:
    rig = Rig(store, jobs(MANY))
    second_by_second(rig, 11)
    rig.clock.step(seconds=step)
    second_by_second(rig, 11)
    latest = max(START + timedelta(seconds=11), rig.clock.now())
    for name, entry in MANY.items():
        assert list(faults(rig.store, name, entry["schedule"], START, latest)) == []
    rig.turn(minutes=2)
    rig.tick()
    assert rig.audit(START - timedelta(hours=2)).clean
    keys = [(run.job, run.key) for run in rig.runs()]
    assert len(keys) == len(set(keys))
    (notice,) = rig.named("clock.stepped")
    assert notice["seconds"] == step


def test_after_a_backward_step_a_job_resumes_at_its_first_instant_without_an_entry(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "*/10 * * * *"}}))
    rig.tick(minutes=10)
    rig.finish()
    rig.clock.step(minutes=-30)
    for _ in range(39):
        rig.tick(minutes=1)
        rig.finish()
    assert [run.scheduled_for for run in rig.runs("a")] == [at(8, 10)]
    rig.tick(minutes=1)
    assert [run.scheduled_for for run in rig.runs("a")] == [at(8, 10), at(8, 20)]


def test_everything_stopped_for_fifteen_minutes(store: SqlStore) -> None:
    rig = Rig(store, jobs(MANY))
    second_by_second(rig, 5)
    rig.turn(minutes=15)
    second_by_second(rig, 5)
    for name, entry in MANY.items():
        assert list(faults(rig.store, name, entry["schedule"], START, rig.clock.now())) == []
    assert rig.named("clock.stepped") == []
    assert len(rig.runs("minute")) == 15


@pytest.mark.parametrize("step", [-3600, 3600])
def test_what_is_not_tied_to_an_instant_goes_on_within_two_ticks(store: SqlStore, step: int) -> None:
    text = jobs({"retry": {"retries": ["1s"]}, "snooze": {}, "rated": {"queue": "q"}}, queues={"q": {"rate": "60/m"}})
    rig = Rig(store, text)
    rig.desk.run_now("retry", author="me")
    rig.tick()
    rig.finish(failed())
    rig.desk.run_now("snooze", author="me")
    rig.tick()
    rig.finish(Snoozed(timedelta(seconds=1)))
    for number in range(2):
        rig.desk.run_now("rated", author="me", payload=number, has_payload=True)
    rig.tick()
    assert [launch.job.name for launch in rig.executor.started].count("rated") == 1
    rig.clock.step(seconds=step)
    rig.tick(seconds=1)
    rig.tick(seconds=1)
    names = [launch.job.name for launch in rig.executor.started]
    assert [names.count(name) for name in ("retry", "snooze", "rated")] == [2, 2, 2]


def test_a_long_wait_is_neither_cut_short_nor_drawn_out(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": {"retries": ["10m"]}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish(failed())
    rig.tick(minutes=5)
    rig.clock.step(hours=1)
    rig.tick(minutes=4)
    assert rig.executor.live == {}
    rig.clock.step(hours=-2)
    rig.tick(minutes=2, seconds=1)
    assert len(rig.executor.live) == 1


def test_the_step_is_made_up_for_once_over_two_nodes(store: SqlStore) -> None:
    database = TurnedClock()
    text = jobs({"a": {"retries": ["10m"]}})
    one = Rig(store, text, TurnedClock(), database=database)
    two = Rig(store, text, TurnedClock(seconds=5.0), database=database, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    one.desk.run_now("a", author="me")
    one.tick()
    one.finish(failed())
    (run,) = one.runs("a")
    for rig in (one, two):
        rig.keeper.tick(database.now())
    database.step(hours=1)
    for _ in range(2):
        for clock in (database, one.clock, two.clock):
            clock.turn(seconds=1)
        for rig in (one, two):
            rig.keeper.tick(database.now())
    assert run.not_before is not None
    assert one.run(run.id).not_before == run.not_before + timedelta(hours=1)
    assert (len(one.named("clock.stepped")), two.named("clock.stepped")) == (1, [])


def test_a_machine_that_slept_was_not_set(sqlite: SqlStore) -> None:
    """Retries whose time came while it slept go on when it wakes."""
    rig = Rig(sqlite, jobs({"a": {"retries": ["10m"]}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish(failed())
    rig.tick(seconds=1)
    rig.clock.suspend(hours=8)
    rig.tick(seconds=1)
    rig.tick(seconds=1)
    assert rig.statuses("a") == ["RUNNING"]
    assert rig.named("clock.stepped") == []


@pytest.mark.parametrize("how", ["suspend", "turn"])
def test_a_node_that_was_stopped_inside_a_tick_has_seen_no_step(sqlite: SqlStore, how: str) -> None:
    """The machine slept, or the process was stopped, after the time was read. Waits stay as long as they were."""
    rig = Rig(sqlite, jobs({"a": {"retries": ["10h"]}}))
    rig.desk.run_now("a", author="me")
    rig.tick()
    rig.finish(failed())
    rig.tick(seconds=1)
    (run,) = rig.runs("a")
    read = rig.store.now()
    getattr(rig.clock, how)(hours=8)
    rig.keeper.tick(read)
    assert rig.keeper.set_back is None
    rig.tick(seconds=1)
    assert rig.run(run.id).not_before == run.not_before
    assert rig.named("clock.stepped") == []


def test_a_step_is_not_believed_from_a_database_that_answers_late(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    rig.tick()
    prompt = rig.store.now
    rig.store.now = lambda: (prompt(), rig.clock.turn(seconds=2))[0]  # type: ignore[method-assign]
    rig.keeper.tick(rig.clock.now() - timedelta(seconds=3))
    rig.store.now = prompt  # type: ignore[method-assign]
    rig.tick(seconds=1)
    assert rig.named("clock.stepped") == []


def test_slow_drift_is_not_a_step(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    for _ in range(20):
        rig.clock.step(seconds=0.4)
        rig.tick(seconds=1)
    assert rig.named("clock.stepped") == []


def test_the_step_is_logged(sqlite: SqlStore, logs: list[dict[str, object]]) -> None:
    rig = Rig(sqlite, jobs())
    rig.tick()
    rig.clock.step(hours=-1)
    rig.tick(seconds=1)
    assert {"event": "clock_stepped", "log_level": "warning", "seconds": -3600.0} in logs


@pytest.mark.parametrize("step", [-3600, 3600])
def test_how_long_a_run_took_is_what_it_took_whatever_the_clock_says(store: SqlStore, step: int) -> None:
    rig = Rig(store, jobs({"a": {}}))
    run, _ = rig.desk.run_now("a", author="me")
    rig.tick()
    rig.tick(seconds=40)
    rig.clock.step(seconds=step)
    rig.tick(seconds=2)
    rig.finish()
    found = rig.run(run.id)
    assert (found.took, found.finished_at) == (42.0, rig.clock.now())
    assert [one.took for one in rig.detail(run.id).attempts] == [42.0]
    assert rig.named("run.settled")[-1]["took"] == 42.0
    with rig.store.queries() as queries:
        (gauge,) = queries.gauges(rig.clock.now()).jobs
    assert gauge.last_duration == 42.0


def test_status_of_a_run_that_is_running_over_the_step(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": {"schedule": "1 8 * * *"}}))
    rig.tick(minutes=1)
    rig.clock.step(hours=-1)
    rig.tick(seconds=1)
    rig.finish()
    (run,) = rig.runs("a")
    assert run.status is Status.COMPLETED
