"""Events that come in at many nodes, and at once."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.errors import Unavailable
from scheduler.core.event import NewEvent, Stored
from scheduler.engine import crowd
from scheduler.engine.inbox import EventInbox
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig
from tests.engine.senders import ask, event, ids, kept, subscribed, told
from tests.until import until


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, subscribed())


def test_a_node_behind_loads_first(store: SqlStore) -> None:
    """What is in force decides who gets a run, not what this node happened to know."""
    rig = Rig(store, subscribed())
    other = Rig(store, subscribed(), rig.clock)
    other.reload(subscribed({"ticket": {}, "later": {}}))
    assert [job for job, _ in told(rig, event())[0].runs] == ["ticket", "later"]


def test_a_node_that_cannot_load_answers_that_it_is_away(store: SqlStore) -> None:
    rig = Rig(store, subscribed())
    other = Rig(store, subscribed(), rig.clock)
    other.reload(subscribed({"ticket": {}, "later": {}}))
    rig.in_force.stand_aside("its release is too old", START)
    (answer,) = ask(rig, event())
    assert isinstance(answer, Unavailable)
    assert "its release is too old" in str(answer)
    assert kept(rig, "e1") is None


def test_the_same_event_on_two_nodes_at_once_is_one(store: SqlStore) -> None:
    """G07: the unique index decides, whoever comes first."""
    rig = Rig(store, subscribed())
    other = Rig(store, subscribed(), rig.clock)
    made: list[list[Any]] = []
    gate = threading.Barrier(8)

    def ask_for(node: Rig) -> None:
        gate.wait(20)
        made.append([ask(node, event(f"e{number}"))[0] for number in range(20)])

    threads = [threading.Thread(target=ask_for, args=(node,)) for node in (rig, other) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == 8
    for number in range(20):
        answers = [one[number] for one in made]
        assert Counter(one.new for one in answers) == {True: 1, False: 7}
        assert len({one.seq for one in answers}) == 1
    assert sorted(ids(rig.runs("ticket"))) == sorted(f"e{number}" for number in range(20))


def test_no_event_falls_between_two_configurations(store: SqlStore) -> None:
    """One node reloads all the time, others take events: each of them concerns the jobs of one configuration."""
    rig = Rig(store, subscribed({"ticket": {}}))
    others = [Rig(store, subscribed({"ticket": {}}), rig.clock) for _ in range(2)]
    stopped = threading.Event()
    made: list[Any] = []

    def take(number: int) -> None:
        count = 0
        while not stopped.is_set():
            count += 1
            made.extend(ask(others[number], event(f"e{number}-{count}")))

    threads = [threading.Thread(target=take, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        names = ("ticket", "a") if turn % 2 else ("ticket", "b")
        rig.reload(subscribed({name: {} for name in names}), drop_pending=True)
    stopped.set()
    for thread in threads:
        thread.join(60)
    stored = [one for one in made if isinstance(one, Stored)]
    assert stored
    assert all(isinstance(one, Stored | Unavailable) for one in made), "in such a storm one may have to come again"
    told_to = [{job for job, _ in one.runs} for one in stored]
    assert all(jobs in ({"ticket"}, {"ticket", "a"}, {"ticket", "b"}) for jobs in told_to)
    assert len(rig.runs("ticket")) == len(stored)


# ------------------------------------------------------------ the thread


@pytest.fixture
def running(rig: Rig) -> Iterator[EventInbox]:
    rig.inbox.start()
    yield rig.inbox
    rig.inbox.stop()


def test_events_that_come_together_share_a_commit(rig: Rig, running: EventInbox) -> None:
    assert _served(rig, running, [event(f"e{number}") for number in range(30)]) == [1, 29]


def test_a_crowd_is_complete_when_as_many_have_come_as_before(
    rig: Rig, running: EventInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is waited for any longer."""
    assert _served(rig, running, [event(f"e{number}") for number in range(10)]) == [1, 9]
    monkeypatch.setattr(crowd, "LULL", 60)
    monkeypatch.setattr(crowd, "LINGER", 60)
    answered: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(9):
        running.submit([event(f"f{number}")], None, lambda group: answered.put(len(group)))
    assert sum(answered.get(timeout=20) for _ in range(9)) == 9


def test_large_bodies_are_no_crowd(rig: Rig, running: EventInbox) -> None:
    """A thousand of them would be more than a transaction or a memory can take."""
    large = [replace(event(f"e{number}"), body=b" " * (4 << 20)) for number in range(10)]
    assert max(_served(rig, running, large)) == 4


def test_what_fails_after_the_answer_harms_nobody(
    rig: Rig, running: EventInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("the daemon is leaving")

    monkeypatch.setattr(rig.inbox, "_wake", fail)
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for number in range(2):
        running.submit([event(f"e{number}")], None, answers.put)
        ((_, (stored,)),) = answers.get(timeout=20)
        assert stored.new


def _served(rig: Rig, running: EventInbox, events: Sequence[NewEvent]) -> list[int]:
    """In groups of which sizes they are served that come while the first of them is; every one gets its answer."""
    served: list[list[tuple[Any, Any]]] = []
    with rig.store.held() as entered:
        for one in events:
            running.submit([one], one.id, served.append)
            assert entered.wait(20)
    until(lambda: sum(map(len, served)) == len(events))
    assert all(answers[0].id == ticket for group in served for ticket, answers in group)
    return [len(group) for group in served]


def test_an_event_whose_runs_have_to_wait_wakes_nobody(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(store, subscribed({"ticket": {"on_event": {"source": "payments", "order": "subject"}}}))
    woken: list[str] = []
    monkeypatch.setattr(rig.inbox, "_wake", lambda: woken.append("worker"))
    told(rig, event("first", subject="o1"))
    assert woken == ["worker"]
    told(rig, event("second", subject="o1"))
    assert woken == ["worker"]
    told(rig, event("third", subject="o2"), event("fourth", subject="o1"))
    assert woken == ["worker", "worker"]
