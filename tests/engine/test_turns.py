"""What was not planned in time says why."""

from __future__ import annotations

import re

import pytest

from scheduler.core.errors import Unavailable
from scheduler.engine.loop import Loop
from scheduler.engine.turns import Obstacle
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs

MINUTELY = {"schedule": "* * * * *"}


def begun(store: SqlStore, **job: object) -> Rig:
    rig = Rig(store, jobs({"a": {**MINUTELY, **job}}))
    rig.tick(seconds=30)
    return rig


def detail(rig: Rig) -> str:
    (skip,) = rig.skips("a")
    return skip.detail


def test_a_daemon_that_was_stopped(sqlite: SqlStore) -> None:
    rig = begun(sqlite)
    rig.tick(minutes=7)
    assert detail(rig) == (
        "catch_up: latest, and a newer one was due; not planned from 08:00:30 to 08:07:30 UTC: "
        "the daemon was stopped, or too busy to turn"
    )
    (notice,) = rig.named("run.skipped")
    assert notice["detail"] == detail(rig)


def test_a_machine_that_was_suspended(sqlite: SqlStore) -> None:
    rig = begun(sqlite)
    rig.clock.suspend(days=1)
    rig.tick()
    assert detail(rig).endswith(
        "; not planned from 2026-03-02 08:00:30 to 2026-03-03 08:00:30 UTC: the machine was suspended"
    )


def test_a_clock_that_was_set_forward(sqlite: SqlStore) -> None:
    rig = begun(sqlite)
    rig.clock.step(hours=1)
    rig.tick(seconds=1)
    assert detail(rig).endswith(" to 09:00:31 UTC: the clock was set forward by 1h")


@pytest.mark.parametrize(("after", "told"), [(1, True), (200, True), (400, False)])
def test_what_its_turns_failed_of_counts_if_that_lasted_longest(sqlite: SqlStore, after: int, told: bool) -> None:
    """A database that is away for the moment when a stopped daemon goes on did not keep it from planning."""
    rig = begun(sqlite)
    rig.turn(seconds=after)
    rig.obstacle = Obstacle("the disk is full", rig.clock.monotonic())
    rig.tick(seconds=420 - after)
    assert detail(rig).endswith(" to 08:07:30 UTC: the disk is full") is told
    assert ("was stopped" in detail(rig)) is not told


def test_a_node_that_stood_aside(sqlite: SqlStore) -> None:
    rig = begun(sqlite)
    rig.in_force.stand_aside("a plug-in is missing", rig.clock.now())
    for _ in range(5):
        rig.turn(minutes=1)
        rig.plan(rig.clock.now())
    rig.in_force.behind = None
    rig.tick()
    # The first turn that had something to plan was at 08:01:30.
    assert re.search(r"not planned from 08:00:30 to 08:05:30 UTC: this node stood aside: a plug-in", detail(rig))


def test_an_old_obstacle_is_forgotten(sqlite: SqlStore) -> None:
    rig = begun(sqlite)
    rig.in_force.stand_aside("a plug-in is missing", rig.clock.now())
    rig.turn(minutes=1)
    rig.plan(rig.clock.now())
    rig.in_force.behind = None
    rig.tick()
    rig.finish()
    rig.tick(minutes=5)
    assert rig.skips("a")[-1].detail.endswith("the daemon was stopped, or too busy to turn")


def test_a_planner_that_turns_in_time_says_nothing(sqlite: SqlStore) -> None:
    """What else is left out has its own reason."""
    rig = begun(sqlite)
    rig.tick(seconds=30)
    rig.tick(seconds=60)
    assert re.fullmatch(r"run \w+ is still running", detail(rig))


def test_what_a_reload_judges_says_why_as_well(sqlite: SqlStore) -> None:
    """It may come before the planner when something ends that kept both from the database."""
    rig = begun(sqlite)
    rig.turn(seconds=10)
    rig.obstacle = Obstacle("the disk is full", rig.clock.monotonic())
    rig.turn(minutes=7)
    rig.reload(jobs({"a": {"schedule": "*/2 * * * *"}}))
    assert detail(rig) == (
        "catch_up: latest, and a newer one was due; not planned from 08:00:30 to 08:07:40 UTC: the disk is full"
    )


def test_what_the_reload_of_a_new_daemon_judges_is_not_explained(sqlite: SqlStore) -> None:
    rig = begun(sqlite)
    rig.succeed()
    rig.turn(minutes=7)
    rig.reload(jobs({"a": {"schedule": "*/2 * * * *"}}))
    assert detail(rig) == "catch_up: latest, and a newer one was due"


def test_what_was_due_before_the_first_turn_is_not_explained(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs({"a": MINUTELY}))
    rig.tick(minutes=7)
    assert detail(rig) == "catch_up: latest, and a newer one was due"


def test_a_loop_knows_what_its_turns_fail_of_first() -> None:
    outcomes: list[Exception | None] = [None, Unavailable("full", hint="free some"), Unavailable("away"), None]
    seen = []

    def tick(_: object) -> int:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return 0

    loop = Loop("planner", tick, lambda: None)  # type: ignore[arg-type, return-value]
    for _ in range(4):
        loop.run()
        seen.append(loop.obstacle and loop.obstacle.reason)
    assert seen == [None, "full", "full", None]
