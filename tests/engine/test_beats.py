"""A lease of another node that ends is noticed when it ends, not at the next round."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from scheduler.core.look import Look
from scheduler.engine.beats import LATER
from scheduler.store.store import SqlStore
from tests.engine.doubles import TurnedClock
from tests.engine.rig import Rig, jobs

LEASE = timedelta(seconds=30)


Looks = Callable[[Rig], Look]


@pytest.fixture
def look(postgres: SqlStore) -> Looks:
    return lambda rig: postgres.look(rig.node, rig.in_force.current.generation, None)


@pytest.fixture
def nodes(postgres: SqlStore) -> tuple[Rig, Rig]:
    database = TurnedClock()
    one = Rig(postgres, jobs(), TurnedClock(), database=database, lease=LEASE)
    two = Rig(postgres, jobs(), TurnedClock(), database=database, lease=LEASE, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    return one, two


def silence(rig: Rig, look: Looks, seconds: float) -> list[timedelta]:
    """It sees the others for so long without a new beat; the turns that it asked for."""
    asked: list[timedelta] = []
    rig.beats._again = asked.append
    rig.beats.rests(look(rig))
    while seconds:
        step = min(seconds, 1.0)
        rig.clock.turn(seconds=step)
        rig.beats.tick(rig.store.now())
        rig.beats.rests(look(rig))
        seconds -= step
    return asked


def test_a_turn_is_asked_for_at_the_end_of_a_lease(nodes: tuple[Rig, Rig], look: Looks) -> None:
    one, _ = nodes
    assert silence(one, look, LEASE.total_seconds() - 2) == []
    one.clock.turn(seconds=1.25)
    asked: list[timedelta] = []
    one.beats._again = asked.append
    assert one.beats.rests(look(one)) == (one.clock.monotonic() < one.beats._next)
    (delay,) = asked
    assert delay == timedelta(seconds=0.75 + LATER)


def test_the_turn_at_its_end_declares_the_node_dead(nodes: tuple[Rig, Rig], look: Looks) -> None:
    one, two = nodes
    silence(one, look, LEASE.total_seconds() - 0.5)
    one.beats.tick(one.store.now())
    assert not [notice for notice in one.notices if notice.name == "node.dead"]
    one.clock.turn(seconds=0.5)
    assert one.beats.tick(one.store.now()) == 1
    (dead,) = [notice for notice in one.notices if notice.name == "node.dead"]
    assert dead.fields["node"] == two.node


def test_a_beat_that_was_raised_meanwhile_is_no_death(nodes: tuple[Rig, Rig], look: Looks) -> None:
    one, two = nodes
    silence(one, look, LEASE.total_seconds() - 0.5)
    two.clock.turn(seconds=20)
    assert two.beats.tick(two.store.now()) == 1
    one.clock.turn(seconds=0.5)
    one.beats.tick(one.store.now())
    assert not [notice for notice in one.notices if notice.name == "node.dead"]
