"""Which configuration a node works with: newer releases, other nodes, jobs that raised an alarm."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core import schedule
from scheduler.core.errors import InvalidInput
from scheduler.core.model import Cause
from scheduler.engine import balance, swap
from scheduler.store.store import SqlStore
from tests.engine.rig import START, Rig, at, instants, jobs

MINUTELY = {"schedule": "* * * * *"}


# ------------------------------------------------------------ releases


def test_a_newer_zone_database_is_a_new_generation_that_moves_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(store, jobs({"a": {"schedule": "0 * * * *"}, "b": {}}))
    rig.tick(hours=1)
    rig.finish()
    rig.turn(hours=1, minutes=30)
    newer_release(monkeypatch)
    rig = Rig(store, rig.text, rig.clock)
    assert rig.in_force.current.generation == 2
    assert rig.state("a").next_due_at == at(10)
    rig.tick()
    assert instants(rig.runs("a")) == [at(9), at(10)]
    rig.tick(minutes=30)
    rig.turn(minutes=2)
    (one,) = rig.audit(START, "a").jobs
    assert one.clean
    assert one.expected == 2
    assert "other" not in one.not_recomputable[0]
    assert "planned with tzdata" in one.not_recomputable[0]
    assert Rig(store, rig.text, rig.clock).in_force.current.generation == 2


def newer_release(monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduler.engine import reload
    from scheduler.store import generations

    for module in (swap, balance, reload, generations, schedule):
        monkeypatch.setattr(module, "TZDATA_VERSION", "2099z")


# ------------------------------------------------------------ starting and following


def second(store: SqlStore, first: Rig, text: str) -> Rig:
    rig = Rig(store, text, first.clock, start=False)
    rig.reloader.start(rig.load(), author="start", node=rig.node)
    rig.register()
    return rig


def test_the_first_node_puts_its_file_in_force_whatever_was_there(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": MINUTELY, "b": {**MINUTELY, "overlap": "queue"}}))
    rig.tick(minutes=1)
    rig.tick(minutes=1)
    rig.desk.run_now("b", author="me", payload=1, has_payload=True)
    rig.turn(minutes=1)
    next_one = Rig(store, jobs({"a": MINUTELY}), rig.clock)
    assert next_one.in_force.current.generation == 2
    assert next_one.statuses("b")[1:] == ["CANCELED", "FAILED"]
    rig.turn(minutes=1)
    rollback = Rig(store, rig.text, rig.clock)
    assert rollback.in_force.job("b") is not None


def test_beside_other_nodes_a_file_that_removes_jobs_or_is_older_is_not_taken(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": {}, "b": {}}))
    two = second(store, one, jobs({"a": {}}))
    assert two.in_force.job("b") is not None
    one.reload(jobs({"a": {}, "b": {}, "c": {}}))
    three = second(store, one, jobs({"a": {}, "b": {}}))
    assert three.in_force.job("c") is not None
    four = second(store, one, jobs({"a": {}, "b": {}, "c": {}, "d": {}}))
    assert four.in_force.current.generation == 3
    one.tick()
    assert one.in_force.job("d") is not None
    assert two.reload(jobs({"a": {}})).removed == ("b", "c", "d")


def test_removed_jobs_are_named_in_their_order_wherever_their_rows_lie(store: SqlStore) -> None:
    rig = Rig(store, jobs({"c": MINUTELY, "a": MINUTELY, "b": {}}))
    rig.tick(minutes=1)
    rig.reload(jobs({"c": MINUTELY, "a": {}, "b": MINUTELY}))
    assert rig.reload(jobs({"d": {}})).removed == ("a", "b", "c")


def test_a_node_counts_as_live_for_thirty_seconds(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": {}, "b": {}}))
    one.turn(seconds=29)
    assert second(store, one, jobs({"a": {}})).in_force.job("b") is not None
    one.turn(seconds=31)
    assert second(store, one, jobs({"a": {}})).in_force.job("b") is None


def test_a_node_follows_what_another_put_in_force(store: SqlStore) -> None:
    one = Rig(store, jobs({"a": MINUTELY}))
    two = second(store, one, one.text)
    one.reload(jobs({"a": {**MINUTELY, "priority": 3}}))
    one.turn(minutes=1)
    two.planner.tick(two.store.now())
    assert two.runs("a") == [], "it must load the newer generation first"
    two.tick()
    assert two.in_force.current.generation == 2
    assert [run.priority for run in two.runs("a")] == [3]


def test_a_generation_that_cannot_be_loaded_makes_the_node_stand_aside(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Rig(store, jobs({"a": MINUTELY, "b": MINUTELY}))
    two = second(store, one, one.text)

    def cannot(files: object) -> None:
        raise InvalidInput("unknown key `steps`")

    load = two.reloader._load_texts
    two.reloader._load_texts = cannot  # type: ignore[assignment]
    one.reload(jobs({"a": MINUTELY, "b": {**MINUTELY, "priority": 3}}))
    two.tick(minutes=1)
    two.tick()
    assert two.in_force.behind == "generation 2 cannot be loaded here: unknown key `steps`"
    assert one.runs() == []
    assert two.worker.claim() is None
    one.tick()
    assert len(one.executor.live) == 2
    two.reloader._load_texts = load
    two.tick()
    assert two.in_force.behind is None
    one.finish()
    one.turn(minutes=1)
    two.tick()
    assert len(two.executor.live) == 2


# ------------------------------------------------------------ alarms


@pytest.mark.parametrize("change", ["same file", "other job"])
def test_a_job_with_an_alarm_gets_another_chance(store: SqlStore, change: str) -> None:
    rig = Rig(store, jobs({"a": {**MINUTELY, "catch_up": "all"}}))
    with rig.store.begin() as tx:
        tx.jobs.set_alarm("a", "planning failed", enabled=False)
    rig.tick(minutes=2)
    assert rig.runs("a") == []
    done = rig.reload(rig.text if change == "same file" else jobs({"a": {**MINUTELY, "catch_up": "all"}, "b": {}}))
    assert done.changed == ("a",)
    rig.tick()
    assert [(run.scheduled_for, run.cause) for run in rig.runs("a")] == [
        (at(8, 1), Cause.CATCH_UP),
        (at(8, 2), Cause.SCHEDULE),
    ]
    assert rig.state("a").alarm is None
    assert rig.state("a").enabled
    rig.turn(minutes=1, seconds=30)
    assert rig.audit(START).clean
    assert rig.audit(START).jobs[0].expected == 2 + int(rig.clock.now() - timedelta(minutes=1) >= at(8, 3))
