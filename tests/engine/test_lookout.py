"""One look for all loops: shared, as one statement, and it tells each of them whether it may rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler.core.errors import DatabaseAway, Unavailable
from scheduler.core.look import Look
from scheduler.engine.lookout import FRESH, Lookout
from scheduler.engine.loop import Loop
from scheduler.store.store import SqlStore
from tests.chaos.postgres import ControlledPostgres
from tests.databases import Place
from tests.engine.doubles import TurnedClock
from tests.engine.rig import Rig, jobs

HOURLY = {"schedule": "0 * * * *", "catch_up": "latest"}


class Ledger:
    """What is looked at: how often, and with which last look."""

    def __init__(self) -> None:
        self.asked: list[Look | None] = []
        self.away: Unavailable | None = None
        self.found = Look(
            now=datetime(2026, 3, 1, tzinfo=UTC),
            mark="1",
            generation=1,
            next_due=None,
            next_deadline=None,
            next_notification=None,
            pending=False,
            cancels=False,
            orphans=False,
            elsewhere=False,
            held=False,
            pings=False,
            beats=(),
            values={},
        )

    def look(self, node: str, generation: int, last: Look | None = None) -> Look:
        self.asked.append(last)
        if self.away is not None:
            raise self.away
        return self.found


def lookout(ledger: Ledger, clock: TurnedClock, generation: list[int] | None = None) -> Lookout:
    loaded = generation or [1]
    return Lookout(ledger, clock, lambda: "node", lambda: loaded[0])  # type: ignore[arg-type]


def test_those_who_turn_together_share_a_look() -> None:
    ledger, clock = Ledger(), TurnedClock()
    shared = lookout(ledger, clock)
    for _ in range(5):
        shared.look()
        clock.turn(seconds=FRESH / 10)
    assert ledger.asked == [None]
    clock.turn(seconds=1)
    shared.look()
    assert ledger.asked == [None, ledger.found]


def test_its_time_is_the_present() -> None:
    ledger, clock = Ledger(), TurnedClock()
    shared = lookout(ledger, clock)
    assert shared.look().now == ledger.found.now
    clock.turn(seconds=FRESH / 2)
    assert shared.look().now == shared.now() == ledger.found.now + timedelta(seconds=FRESH / 2)


def test_what_was_found_for_another_generation_is_of_no_use() -> None:
    ledger, clock, generation = Ledger(), TurnedClock(), [1]
    shared = lookout(ledger, clock, generation)
    shared.look()
    generation[0] = 2
    shared.look()
    assert ledger.asked == [None, None]


def test_a_database_that_is_away_is_asked_once_for_all() -> None:
    ledger, clock = Ledger(), TurnedClock()
    ledger.away = DatabaseAway("it is away")
    shared = lookout(ledger, clock)
    for _ in range(3):
        with pytest.raises(Unavailable, match="it is away"):
            shared.look()
    assert len(ledger.asked) == 1
    ledger.away = None
    clock.turn(seconds=1)
    assert shared.look().mark == "1"


def test_a_loop_ticks_when_it_is_asked_and_rests_when_it_may() -> None:
    ledger = Ledger()
    ticks: list[datetime] = []
    rests = [True]

    class Counted:
        def tick(self, now: datetime) -> int:
            ticks.append(now)
            return 1

        def rests(self, look: Look) -> bool:
            return rests[0]

    loop = lookout(ledger, TurnedClock()).loop("counted", Counted(), lambda: ledger.found.now)
    loop.turn()
    assert ticks == []
    loop.run()
    assert len(ticks) == 1
    rests[0] = False
    loop.turn()
    assert len(ticks) == 2
    rests[0] = True
    assert loop.request()
    loop.turn()
    assert len(ticks) == 3, "a turn that was asked for is one, whoever carries it out"


def test_a_request_while_a_loop_looks_is_not_lost() -> None:
    looking, asked = threading.Event(), threading.Event()
    ticks: list[datetime] = []
    ledger = Ledger()

    def rests(look: Look) -> bool:
        looking.set()
        assert asked.wait(20)
        return True

    loop = Loop(
        "asked",
        lambda now: ticks.append(now) or 1,  # type: ignore[func-returns-value]
        lambda: ledger.found.now,
        look=lookout(ledger, TurnedClock()).look,
        rests=rests,
    )
    thread = threading.Thread(target=loop.turn)
    thread.start()
    assert looking.wait(20)
    assert loop.request()
    asked.set()
    thread.join(20)
    assert len(ticks) == 1


def _beat(rig: Rig, node: str) -> int:
    return next(beat.number for beat in found(rig).beats if beat.node == node)


# ------------------------------------------------------------ what is found


def found(rig: Rig) -> Look:
    return rig.store.look(rig.node, rig.in_force.current.generation)


def test_an_idle_ledger_lets_everybody_rest(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.tick()
    look = found(rig)
    assert look.next_due == rig.state("a").next_due_at
    assert not any((look.pending, look.cancels, look.orphans, look.elsewhere, look.held, look.pings))
    assert look.generation == rig.in_force.current.generation
    assert [beat.node for beat in look.beats] == [rig.node]
    assert all(part.rests(look) for part in (rig.planner, rig.keeper, rig.inbox, rig.worker, rig.vigil, rig.signs))


def test_work_wakes_those_whom_it_concerns(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    rig.tick()
    late = replace(found(rig), now=rig.state("a").next_due_at)
    assert not rig.planner.rests(late)
    rig.desk.run_now("a", author="test")
    assert found(rig).pending
    assert not rig.worker.rests(found(rig))
    rig.tick()
    assert not found(rig).pending
    (run,) = rig.runs("a")
    rig.desk.cancel(run.id, author="test")
    assert found(rig).cancels
    assert not rig.worker.rests(found(rig))


def test_runs_of_a_node_that_is_gone_wake_the_keeper(postgres: SqlStore) -> None:
    rig = Rig(postgres, jobs({"a": HOURLY}))
    rig.desk.run_now("a", author="test")
    rig.tick()
    other = Rig(postgres, jobs({"a": HOURLY}), rig.clock)
    other.tick()
    assert not found(other).orphans
    with postgres.begin() as tx:
        assert tx.nodes.declare_dead(rig.node, _beat(rig, rig.node), rig.store.now())
    assert found(other).orphans
    assert not other.keeper.rests(found(other))


def test_a_newer_generation_wakes_the_keeper(store: SqlStore) -> None:
    rig = Rig(store, jobs({"a": HOURLY}))
    other = Rig(store, jobs({"a": HOURLY}), rig.clock)
    other.tick()
    assert other.keeper.rests(found(other))
    rig.reload(jobs({"a": HOURLY, "b": HOURLY}))
    assert not other.keeper.rests(found(other))


@pytest.fixture
def unshared_postgres_place(tmp_path: Path) -> Iterator[Place]:
    """On a server of its own: a mark counts what is written anywhere on the server."""
    with ControlledPostgres(tmp_path / "server", autovacuum="off", fsync="off") as server:
        yield Place("postgresql", server.url(), tmp_path)


@pytest.fixture(params=["sqlite", "unshared_postgres"])
def unshared_store(request: pytest.FixtureRequest) -> Iterator[SqlStore]:
    place: Place = request.getfixturevalue(f"{request.param}_place")
    with closing(place.open()) as opened:
        yield opened


def test_a_mark_stays_while_only_beats_are_written(unshared_store: SqlStore) -> None:
    """On SQLite a beat is a write like any other: it only costs a look."""
    store = unshared_store
    rig = Rig(store, jobs({"a": HOURLY}), lease=timedelta(minutes=3))
    rig.tick()
    before = found(rig)
    assert found(rig).mark == before.mark
    with store.begin() as tx:
        tx.nodes.renew(rig.node, rig.store.now(), generation=1)
    beaten = found(rig)
    assert beaten.beats[0].number == before.beats[0].number + 1
    if store.kind == "postgresql":
        assert beaten.mark == before.mark
        rig.tick(seconds=25)  # Somebody watches, which is written down.
        assert found(rig).values["watched"] != before.values["watched"]
        assert found(rig).mark == before.mark
    with store.begin() as tx:
        tx.generations.set_value("anything", "else")
    assert found(rig).mark not in (before.mark, beaten.mark)


def test_a_mark_shows_what_was_committed_in_whatever_order(unshared_postgres_place: Place) -> None:
    with closing(unshared_postgres_place.open()) as postgres, closing(unshared_postgres_place.open()) as other:
        _overtaken(postgres, other)


def _overtaken(postgres: SqlStore, other: SqlStore) -> None:
    rig = Rig(postgres, jobs({"a": HOURLY}))
    with other.begin() as long:
        before = found(rig).mark
        long.generations.set_value("first", "begun")
        assert found(rig).mark == before, "nobody sees it yet"
        with postgres.begin() as tx:
            tx.generations.set_value("second", "done")
        during = found(rig).mark
        assert during != before
    assert found(rig).mark not in (before, during)
