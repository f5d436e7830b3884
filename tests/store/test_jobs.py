"""Nodes, generations and jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler.core.job import Queue
from scheduler.core.model import Pause, ScheduleVersion
from scheduler.core.requests import Advance
from scheduler.core.schedule import SCHEDULE_CODE, TZDATA_VERSION
from scheduler.store.store import SqlStore
from tests.store.world import DAY, HOUR, MINUTE, T0, add, claim, job_state, new_run, node, occurrence, set_up, state


def test_a_node_as_it_registered(store: SqlStore) -> None:
    plain = node("n1", lease=None)
    full = node("n2", queues=("a", "b"), generation=7, clock_offset=-0.25, started_at=T0 + MINUTE)
    with store.begin() as tx:
        tx.nodes.register(plain, T0)
        tx.nodes.register(full, T0)
        assert tx.nodes.all() == [replace(plain, beat_at=T0), replace(full, beat_at=T0)]


def test_beats(store: SqlStore) -> None:
    set_up(store, [])
    with store.begin() as tx:
        assert tx.nodes.renew("n1", T0 + MINUTE, generation=3, clock_offset=0.5)
        (found,) = tx.nodes.all()
        assert (found.beat, found.beat_at, found.generation, found.clock_offset) == (1, T0 + MINUTE, 3, 0.5)
        assert not tx.nodes.renew("nobody", T0, generation=3)
        assert not tx.nodes.declare_dead("n1", 0, T0)
        assert tx.nodes.declare_dead("n1", 1, T0)
        assert not tx.nodes.declare_dead("n1", 1, T0)
        assert not tx.nodes.renew("n1", T0, generation=3)
        assert not tx.nodes.mark("n1", "stopping", T0)
        assert tx.nodes.all()[0].state == "dead"


def test_a_node_stops_and_never_comes_back(store: SqlStore) -> None:
    set_up(store, [])
    with store.begin() as tx:
        assert tx.nodes.hold("n1")
        assert tx.nodes.mark("n1", "stopping", T0)
        assert not tx.nodes.hold("n1")
        assert tx.nodes.renew("n1", T0, generation=1)
        assert tx.nodes.mark("n1", "stopped", T0)
        assert not tx.nodes.mark("n1", "stopping", T0)
        assert not tx.nodes.renew("n1", T0, generation=1)
        assert not tx.nodes.declare_dead("n1", 1, T0)
        assert not tx.nodes.hold("nobody")


def test_since_when_a_node_leaves_is_kept(store: SqlStore) -> None:
    set_up(store, [])
    with store.begin() as tx:
        assert [node.leaving_at for node in tx.nodes.all()] == [None]
        for minutes, word in enumerate(("stopping", "stopping", "stopped")):
            assert tx.nodes.mark("n1", word, T0 + timedelta(minutes=minutes))
        (node,) = tx.nodes.all()
    assert (node.leaving_at, node.beat_at) == (T0, T0 + timedelta(minutes=2))


def test_old_nodes_are_forgotten_once_they_hold_nothing(store: SqlStore) -> None:
    set_up(store, nodes=["live", "dead", "busy"])
    add(store, new_run("job"))
    claim(store, name="busy")
    with store.begin() as tx:
        for name in ("dead", "busy"):
            assert tx.nodes.declare_dead(name, 0, T0)
        assert tx.nodes.prune(T0) == 0
        assert tx.nodes.prune(T0 + DAY) == 1
        assert {one.id for one in tx.nodes.all()} == {"live", "busy"}


def test_generations(store: SqlStore) -> None:
    with store.begin() as tx:
        assert tx.generations.newest(lock=True) is None
        assert tx.generations.newest_id() == 0
        first = tx.generations.add("h1", {"jobs.yaml": "a: ä\n"}, T0, "me")
        assert (first.id, first.tzdata, first.schedule_code) == (1, TZDATA_VERSION, SCHEDULE_CODE)
        second = tx.generations.add("h2", {}, T0, "you")
        third = tx.generations.add("h1", {}, T0 + HOUR, "me")
    with store.read() as tx:
        assert tx.generations.newest() == third
        assert tx.generations.newest_id() == 3
        assert tx.generations.get(1) == first
        assert tx.generations.get(4) is None
        assert tx.generations.find("h1") == third
        assert tx.generations.find("h2") == second
        assert tx.generations.find("h3") is None


def test_named_values(store: SqlStore) -> None:
    with store.begin() as tx:
        assert tx.generations.value("k") is None
        assert not tx.generations.swap_value("k", "x", "1")
        assert tx.generations.swap_value("k", None, "1")
        assert not tx.generations.swap_value("k", None, "2")
        assert not tx.generations.swap_value("k", "x", "2")
        assert tx.generations.swap_value("k", "1", "2")
        tx.generations.set_value("k", "3")
        tx.generations.set_value("l", "")
        assert (tx.generations.value("k"), tx.generations.value("l")) == ("3", "")


def test_a_job_as_it_was_put(store: SqlStore) -> None:
    full = state(
        "full",
        enabled=False,
        next_due_at=T0,
        removed_at=T0 + MINUTE,
        pruned_before=T0 - DAY,
        deadline_at=T0 + HOUR,
        last_success_at=T0 - HOUR,
        settled_until=T0 - 2 * HOUR,
        last_failure_at=T0 - 3 * HOUR,
        consecutive_failures=4,
        alarm="broken",
    )
    with store.begin() as tx:
        tx.jobs.put([(full, '{"command": "true"}'), (state("plain"), "{}")])
    with store.begin() as tx:
        assert tx.jobs.states(["full", "nothing"]) == {"full": full}
        assert tx.jobs.states(lock=True) == {"full": full, "plain": state("plain")}
        tx.jobs.put([(state("full", generation=2), '{"command": "false"}')])
        assert tx.jobs.states(["full"]) == {"full": state("full", generation=2)}
    with store.queries() as queries:
        assert queries.jobs(T0, ["full"])[0].definition == {"command": "false"}


def test_what_is_due(store: SqlStore) -> None:
    names = {
        "second": state("second", next_due_at=T0),
        "first": state("first", next_due_at=T0 - HOUR),
        "later": state("later", next_due_at=T0 + timedelta(microseconds=1)),
        "never": state("never"),
        "off": state("off", next_due_at=T0, enabled=False),
        "removed": state("removed", next_due_at=T0, removed_at=T0),
        "newer": state("newer", next_due_at=T0 - DAY, generation=2),
    }
    set_up(store, names.values())
    pause = Pause("first", T0 - MINUTE, None, "", "")
    over = Pause("second", T0 - DAY, T0 - 2 * HOUR, "", "")
    run = occurrence("second", T0 - DAY)
    add(store, run)
    with store.begin() as tx:
        tx.jobs.pause([pause, over])
        assert tx.jobs.next_due(1) == T0 - HOUR
        assert tx.jobs.next_due(2) == T0 - DAY
        assert tx.jobs.next_due(0) is None
        due = tx.jobs.due(T0, 1, 10)
        assert [one.state for one in due] == [names["first"], names["second"]]
        assert [one.pauses for one in due] == [(pause,), ()]
        assert [[u.run for u in one.unfinished] for one in due] == [[], [run.id]]
        assert [one.state.name for one in tx.jobs.due(T0, 1, 1)] == ["first"]
        assert {one.state.name for one in tx.jobs.due(T0 + HOUR, 2, 10)} == {"first", "second", "later", "newer"}
        (given,) = tx.jobs.context(["second"], T0 - DAY)
        assert given.pauses == (over,)
        assert tx.jobs.context(["nothing"], T0) == []


def test_only_who_saw_the_instant_moves_it(store: SqlStore) -> None:
    set_up(store, [state("a", next_due_at=T0), state("b", next_due_at=T0 + HOUR), state("c", next_due_at=T0)])
    with store.begin() as tx:
        moved = tx.jobs.advance(
            [
                Advance("a", T0, T0 + MINUTE),
                Advance("b", T0, T0 + MINUTE),
                Advance("c", T0, None),
                Advance("nothing", T0, None),
            ]
        )
    assert moved == {"a", "c"}
    assert [job_state(store, name).next_due_at for name in "abc"] == [T0 + MINUTE, T0 + HOUR, None]


def test_alarms_and_deadlines(store: SqlStore) -> None:
    set_up(store, ["a", "b"])
    with store.begin() as tx:
        tx.jobs.set_alarm("a", "cannot be planned", enabled=False)
        tx.jobs.set_deadlines({"a": T0 + HOUR, "b": None, "nothing": T0})
    found = job_state(store, "a")
    assert (found.alarm, found.enabled, found.deadline_at) == ("cannot be planned", False, T0 + HOUR)
    assert job_state(store, "b").deadline_at is None
    with store.begin() as tx:
        tx.jobs.set_alarm("a", None, enabled=True)
    assert (job_state(store, "a").alarm, job_state(store, "a").enabled) == (None, True)


def test_schedule_versions(store: SqlStore) -> None:
    first = ScheduleVersion("a", {"cron": ["* * * * *"]}, T0, None)
    other = ScheduleVersion("b", {}, T0, None)
    second = ScheduleVersion("a", {"cron": ["0 * * * *"]}, T0 + HOUR, None)
    with store.begin() as tx:
        tx.jobs.open_versions([first, other])
        tx.jobs.close_versions(["a"], T0 + HOUR)
        tx.jobs.open_versions([second])
        closed = replace(first, valid_to=T0 + HOUR)
        assert tx.jobs.versions(T0) == [closed, second, other]
        assert tx.jobs.versions(T0, ["a"]) == [closed, second]
        assert tx.jobs.versions(T0 + HOUR, ["a"]) == [second]
        tx.jobs.close_versions(["a"], T0 + HOUR)
        assert tx.jobs.versions(T0, ["a"]) == [closed]


def test_a_naive_instant_is_refused(store: SqlStore) -> None:
    from sqlalchemy.exc import StatementError

    with pytest.raises(StatementError, match="naive"), store.begin() as tx:
        tx.nodes.register(node(), T0.replace(tzinfo=None))


def test_queues_follow_the_configuration(store: SqlStore) -> None:
    set_up(store, queues=[Queue("a", 1, 2.0, 3)])
    with store.begin() as tx:
        tx.generations.put_queues([Queue("b"), Queue("scans", concurrency=9)], T0)
    with store.queries() as queries:
        assert [view.queue for view in queries.queues()] == [Queue("b"), Queue("default", 64), Queue("scans", 9)]
