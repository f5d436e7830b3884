"""Several nodes on one PostgreSQL: beats, takeover, and what a dead node can no longer do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.ids import new_id
from scheduler.core.model import Status
from scheduler.engine import beats
from scheduler.engine.beats import Beats
from scheduler.store.store import SqlStore
from tests.engine.checker import faults
from tests.engine.doubles import TurnedClock
from tests.engine.rig import START, Rig, at, instants, jobs

LEASE = timedelta(seconds=30)
MINUTELY = {"schedule": "* * * * *"}


@dataclass
class Pair:
    """Two nodes with a clock each, and the database's."""

    database: TurnedClock
    one: Rig
    two: Rig

    def seconds(self, count: int, *live: Rig) -> None:
        """Time passes for everybody; `live` nodes turn (both, if none is named)."""
        for _ in range(count):
            for clock in (self.database, self.one.clock, self.two.clock):
                clock.turn(seconds=1)
            for rig in live or (self.one, self.two):
                now = rig.store.now()
                rig.beats.tick(now)
                rig.keeper.tick(now)
                rig.planner.tick(now)
                rig.worker.tick(now)

    def state(self, rig: Rig) -> str:
        with self.two.store.read() as tx:
            return next(node.state for node in tx.nodes.all() if node.id == rig.node)


def declare_dead(rig: Rig, node: str) -> None:
    with rig.store.begin() as tx:
        beat = next(one.beat for one in tx.nodes.all() if one.id == node)
        assert tx.nodes.declare_dead(node, beat, rig.store.now())


def pair(store: SqlStore, text: str) -> Pair:
    database = TurnedClock()
    one = Rig(store, text, TurnedClock(), database=database, lease=LEASE)
    two = Rig(store, text, TurnedClock(seconds=77_000.0), database=database, lease=LEASE, start=False)
    two.reloader.start(two.load(), author="start", node=two.node)
    two.register()
    return Pair(database, one, two)


def holding(store: SqlStore, **job: object) -> Pair:
    """The first node holds a run of `a` and has stopped turning; both have seen each other's beats."""
    both = pair(store, jobs({"a": {"schedule": "20 0 8 * * *", **job}}))
    both.two.worker.accepting = False
    both.seconds(20)
    both.two.worker.accepting = True
    assert len(both.one.executor.live) == 1
    return both


def test_a_silent_node_is_declared_dead_after_its_lease_not_before(postgres: SqlStore) -> None:
    both = holding(postgres)
    both.seconds(24, both.two)
    assert both.state(both.one) == "live"
    assert both.two.executor.live == {}
    both.seconds(12, both.two)
    assert both.state(both.one) == "dead"
    assert len(both.two.executor.live) == 1
    (run,) = both.two.runs("a")
    assert (run.node, run.attempt, run.lost, run.failures) == (both.two.node, 2, 1, 0)
    assert [one.outcome for one in both.two.detail(run.id).attempts] == ["lost", None]


def test_a_node_that_renews_is_never_declared_dead(postgres: SqlStore) -> None:
    both = holding(postgres)
    both.seconds(45)
    assert (both.state(both.one), both.state(both.two)) == ("live", "live")


def test_a_beat_that_was_raised_while_it_was_asked_for_counts_from_the_answer(
    postgres: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that waits four of the thirty seconds would otherwise take the three between KILL and the take-over."""
    both = holding(postgres)
    read = both.two.store.read

    def waits() -> Any:
        monkeypatch.setattr(both.two.store, "read", read)
        both.seconds(4, both.one)
        both.one.beats.hurry()
        assert both.one.beats.tick(both.one.store.now()) == 1
        return read()

    both.two.beats.hurry()
    monkeypatch.setattr(both.two.store, "read", waits)
    assert both.two.beats.tick(both.two.store.now()) == 1
    both.seconds(29, both.two)
    assert both.state(both.one) == "live"
    both.seconds(10, both.two)
    assert both.state(both.one) == "dead"


@pytest.mark.parametrize("who", ["one", "two", "database"])
@pytest.mark.parametrize("hours", [-5, 5])
def test_wall_clocks_take_no_part_in_leases(postgres: SqlStore, who: str, hours: int) -> None:
    """D22"""
    both = holding(postgres)
    both.seconds(10, both.two)
    {"one": both.one.clock, "two": both.two.clock, "database": both.database}[who].step(hours=hours)
    both.seconds(13, both.two)
    assert both.state(both.one) == "live"
    both.seconds(13, both.two)
    assert both.state(both.one) == "dead"


def test_a_dead_node_changes_nothing_any_more(postgres: SqlStore) -> None:
    """D02: a late result under an old fence touches no row."""
    both = holding(postgres)
    both.seconds(36, both.two)
    (run,) = both.two.executor.live
    both.one.executor.finish_all()
    both.one.tick()
    assert both.two.run(run).status is Status.RUNNING
    assert both.one.died == 1
    assert both.one.worker.idle
    both.two.finish()
    assert both.two.run(run).status is Status.COMPLETED
    assert both.two.run(run).attempt == 2


def test_a_node_that_finds_itself_dead_says_so_once_and_goes_on_under_another_name(postgres: SqlStore) -> None:
    both = holding(postgres)
    both.seconds(36, both.two)
    both.seconds(20)
    assert both.one.died == 1
    former, both.one.node = both.one.node, new_id()
    both.one.register()
    both.seconds(40)
    assert (both.one.died, both.state(both.one)) == (1, "live")
    assert former != both.one.node


def test_a_dead_node_neither_plans_nor_claims(postgres: SqlStore) -> None:
    both = pair(postgres, jobs({"a": MINUTELY}))
    declare_dead(both.two, both.one.node)
    both.seconds(70, both.one)
    assert both.one.runs("a") == []


@pytest.mark.parametrize(
    ("on_lost", "deaths", "status", "attempts"),
    [("retry", 2, Status.RUNNING, 3), ("retry", 3, Status.FAILED, 3), ("fail", 1, Status.FAILED, 1)],
)
def test_on_lost(postgres: SqlStore, on_lost: str, deaths: int, status: Status, attempts: int) -> None:
    """Three lost attempts at most, counted apart from `retries`."""
    both = holding(postgres, on_lost=on_lost)
    watcher = both.two
    for _ in range(deaths):
        (run,) = watcher.runs("a")
        declare_dead(watcher, str(run.node))
        if run.node == watcher.node:
            watcher.node = new_id()
            watcher.register()
        both.seconds(31, watcher)
    (run,) = watcher.runs("a")
    assert (run.status, run.attempt, run.lost, run.failures) == (status, attempts, deaths, 0)
    assert run.reason == ("lost" if status is Status.FAILED else None)


def test_the_second_lost_attempt_waits(postgres: SqlStore) -> None:
    both = holding(postgres)
    both.seconds(36, both.two)
    (run,) = both.two.runs("a")
    both.two.worker.accepting = False
    declare_dead(both.two, str(run.node))
    both.two.keeper.tick(both.two.store.now())
    (run,) = both.two.runs("a")
    assert (run.status, run.not_before) == (Status.PENDING, both.database.now() + timedelta(seconds=30))


def test_a_lost_run_that_was_to_be_cancelled_is_canceled(postgres: SqlStore) -> None:
    both = holding(postgres)
    (run,) = both.one.executor.live
    both.two.desk.cancel(run, author="me")
    both.seconds(36, both.two)
    assert both.two.run(run).status is Status.CANCELED


def test_a_run_that_ended_is_not_lost(postgres: SqlStore) -> None:
    """D17"""
    both = holding(postgres)
    (run,) = both.one.executor.live
    both.one.finish()
    both.seconds(36, both.two)
    assert both.state(both.one) == "dead"
    assert both.two.run(run).status is Status.COMPLETED
    assert both.two.named("run.lost") == []


def test_runs_of_jobs_that_a_node_has_not_loaded_are_left_to_others(postgres: SqlStore) -> None:
    both = pair(postgres, jobs({"a": {}}))
    both.one.reload(jobs({"a": {}, "b": {}}))
    both.one.desk.run_now("b", author="me")
    both.one.tick()
    declare_dead(both.two, both.one.node)
    both.two.keeper._follow = lambda now: None
    both.two.keeper.tick(both.two.store.now())
    assert both.two.statuses("b") == ["RUNNING"]
    both.two.keeper._follow = both.two.reloader.follow
    both.two.tick()
    assert both.two.statuses("b") == ["RUNNING"]
    assert both.two.executor.of("b")


def test_no_beat_while_the_supervisor_is_silent(postgres: SqlStore) -> None:
    rig = Rig(postgres, jobs(), lease=LEASE)
    rig.tick()
    rig.switch.silent = 6.0
    rig.tick(seconds=20)
    with rig.store.read() as tx:
        assert [node.beat for node in tx.nodes.all()] == [1]
    assert rig.switch.killed == 0
    rig.switch.silent = 10.1
    rig.tick(seconds=1)
    assert rig.switch.killed == 1
    rig.switch.silent, rig.switch.gone = 0.0, True
    rig.tick(seconds=20)
    rig.switch.gone = False
    rig.tick(seconds=1)
    with rig.store.read() as tx:
        assert [node.beat for node in tx.nodes.all()] == [2]


def test_trust_is_counted_from_before_the_renewal_was_sent(postgres: SqlStore) -> None:
    rig = Rig(postgres, jobs(), lease=LEASE)
    sent = rig.clock.boottime()
    rig.store.begun = lambda: rig.clock.turn(seconds=7)
    rig.beats.tick(rig.store.now())
    assert rig.switch.trusted == [(sent + 22.5, sent + 27.0)]


def test_trust_counts_the_time_that_a_machine_sleeps(postgres: SqlStore) -> None:
    rig = Rig(postgres, jobs(), lease=LEASE)
    rig.clock.suspend(hours=1)
    rig.beats.tick(rig.store.now())
    assert rig.switch.trusted == [(1000.0 + 3600 + 22.5, 1000.0 + 3600 + 27.0)]


def test_a_renewal_that_fails_extends_no_trust_and_is_tried_again_at_once(postgres: SqlStore) -> None:
    rig = Rig(postgres, jobs(), lease=LEASE)
    rig.store.away = True
    for _ in range(2):
        with pytest.raises(Exception, match="away"):
            rig.beats.tick(rig.store.now())
    assert rig.switch.trusted == []
    rig.store.away = False
    assert rig.beats.tick(rig.store.now()) == 1
    assert len(rig.switch.trusted) == 1


def test_it_is_known_until_when_the_supervisor_trusts_this_node(postgres: SqlStore) -> None:
    rig = Rig(postgres, jobs(), lease=LEASE)
    trusted: list[float] = []
    told = Beats(
        rig.store,
        rig.in_force,
        rig.bus,
        rig.clock,
        lambda: rig.switch,
        lambda: rig.node,
        LEASE,
        on_dead=lambda: None,
        on_trust=lambda: trusted.append(rig.clock.boottime()),
    )
    assert not told.trusted
    told.tick(rig.store.now())
    rig.turn(seconds=22)
    assert told.trusted
    told.tick(rig.store.now())
    assert len(trusted) == 1, "it was trusted all the time"
    rig.turn(seconds=23)
    assert not told.trusted
    told.tick(rig.store.now())
    assert (told.trusted, len(trusted)) == (True, 2)
    told.distrust()
    assert not told.trusted


def test_without_a_lease_children_live_as_long_as_the_daemon(sqlite: SqlStore) -> None:
    rig = Rig(sqlite, jobs())
    rig.beats.tick(rig.store.now())
    rig.turn(minutes=5)
    rig.beats.tick(rig.store.now())
    assert rig.switch.trusted == [(None, None)] * 2


def test_intervals_follow_the_lease() -> None:
    assert beats.LONGEST_INTERVAL == 10.0
    assert beats.TERM_SHARE < beats.KILL_SHARE < 1


def test_the_offset_of_the_database_is_measured(postgres: SqlStore) -> None:
    both = pair(postgres, jobs())
    both.one.clock.step(seconds=-4)
    both.seconds(6)
    assert (both.one.beats.offset, both.two.beats.offset) == (4.0, 0.0)
    with both.one.store.read() as tx:
        assert [node.clock_offset for node in tx.nodes.all()] == [4.0, 0.0]


def test_the_time_of_planning_moves_on_inside_a_transaction(postgres: SqlStore) -> None:
    """D16"""
    with postgres.begin():
        first = postgres.now()
        assert postgres.now() > first


def test_two_nodes_with_clocks_that_differ_run_each_instant_once(postgres: SqlStore) -> None:
    """D10, D11, D20: the instant is the identity, the row decides; both nodes carry one host name."""
    both = pair(postgres, jobs({"a": {"schedule": "* * * * * *"}, "b": {"schedule": "*/2 * * * * *"}}))
    both.one.clock.step(seconds=3)
    for _ in range(30):
        both.seconds(1)
        both.one.finish()
        both.two.finish()
    until = both.database.now()
    assert instants(both.one.runs("a")) == [at(8, 0, second) for second in range(1, 31)]
    assert list(faults(both.one.store, "b", "*/2 * * * * *", START, until)) == []
    assert len(both.one.executor.started) + len(both.two.executor.started) == 45
