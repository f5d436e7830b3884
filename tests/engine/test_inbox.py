"""Events come in: stored once, and one run for every job that they concern."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.errors import NotFound, SchedulerError, Unavailable
from scheduler.core.event import NewEvent, Stored, Via
from scheduler.core.model import Cause
from scheduler.engine.inbox import EventInbox
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig
from tests.engine.senders import ask, event, ids, kept, subscribed, told
from tests.until import until


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, subscribed({"ticket": {}, "refund": {"on_event": {"source": "payments", "types": "refund.*"}}}))


def test_an_event_is_stored_and_every_job_that_it_concerns_has_its_run(store: SqlStore) -> None:
    rig = Rig(store, subscribed({"one": {}, "two": {}, "none": {"on_event": {"source": "payments", "types": "no.*"}}}))
    (stored,) = told(rig, event("e1", data={"sum": 3}))
    assert stored.new
    assert [job for job, _ in stored.runs] == ["one", "two"]
    assert [(run.job, run.cause, run.key) for run in rig.runs()] == [
        ("one", Cause.EVENT, "event:payments:e1"),
        ("two", Cause.EVENT, "event:payments:e1"),
    ]
    run = rig.run(stored.runs[0][1])
    assert run.payload["data"] == {"id": "e1", "sum": 3}
    assert (run.has_payload, run.event) == (True, stored.seq)
    found = kept(rig, "e1")
    assert found is not None
    assert (found.seq, found.body) == (stored.seq, b'{"id": "e1", "sum": 3}')


def test_an_event_and_its_runs_are_there_together_or_not_at_all(rig: Rig) -> None:
    rig.store.broken_commits = 1
    (answer,) = ask(rig, event())
    assert isinstance(answer, Unavailable)
    assert kept(rig, "e1") is None
    assert rig.runs() == []


def test_an_answer_that_got_lost_costs_nothing(rig: Rig) -> None:
    """The sender was told 503, and sends it again."""
    rig.store.lost_answers = 1
    assert isinstance(ask(rig, event())[0], Unavailable)
    assert not told(rig, event())[0].new
    assert len(rig.runs("ticket")) == 1


def test_a_group_is_one_transaction(rig: Rig) -> None:
    before = rig.store.writes
    answers = told(rig, *(event(f"e{number}") for number in range(50)))
    assert rig.store.writes == before + 1
    assert all(one.new and len(one.runs) == 1 for one in answers)
    assert len(rig.named("event.received")) == 50
    assert len(rig.named("run.planned")) == 50
    assert rig.woken == 1


def test_an_event_that_is_there_makes_no_run_again(rig: Rig) -> None:
    """G08: the same event with whatever is new about the request: the id of the event decides."""
    told(rig, event())
    again = told(rig, event(headers=(("x-request-id", "2"),), received_at=START + timedelta(hours=1)))
    assert [(one.new, one.runs) for one in again] == [(False, ())]
    assert len(rig.runs("ticket")) == 1
    found = kept(rig, "e1")
    assert found is not None
    assert found.duplicates == 1


def test_the_second_of_a_group_is_a_duplicate_of_the_first(rig: Rig) -> None:
    answers = told(rig, event(), event("e2"), event(), event())
    assert [one.new for one in answers] == [True, True, False, False]
    assert answers[0].seq == answers[2].seq == answers[3].seq
    assert [len(one.runs) for one in answers] == [1, 1, 0, 0]
    assert len(rig.runs("ticket")) == 2


def test_a_job_that_came_later_gets_nothing_of_a_duplicate(rig: Rig) -> None:
    told(rig, event())
    rig.reload(subscribed({"ticket": {}, "later": {}}))
    told(rig, event(), event("e2"))
    assert ids(rig.runs("ticket")) == ["e1", "e2"]
    assert ids(rig.runs("later")) == ["e2"]


def test_whoever_comes_back_subscribes_from_then_on(rig: Rig) -> None:
    rig.reload(subscribed({"other": {}}), drop_pending=True)
    told(rig, event())
    rig.reload(subscribed({"ticket": {}}), drop_pending=True)
    told(rig, event(), event("e2"))
    assert ids(rig.runs("ticket")) == ["e2"]


def test_a_job_that_is_switched_off_gets_nothing(store: SqlStore) -> None:
    rig = Rig(store, subscribed({"ticket": {"enabled": False}}))
    assert told(rig, event())[0].runs == ()


def test_found_by_a_scan_it_comes_through_the_same_door(rig: Rig) -> None:
    (found,) = told(rig, event(via=Via.SCAN, found_by="payments-scan", vouched_by="api"))
    (run,) = rig.runs("ticket")
    assert rig.run(run.id).payload["event"]["via"] == "scan"
    (late,) = told(rig, event())
    assert (found.seq, late.new) == (late.seq, False)
    stands = kept(rig, "e1")
    assert stands is not None
    assert (stands.via, stands.webhook_at, stands.missed) == (Via.SCAN, START, False)
    assert len(rig.runs("ticket")) == 1


def test_runs_of_a_group_come_as_the_events_occurred(rig: Rig) -> None:
    """G13: a list that is newest first."""
    newest_first = [event(f"e{n}", occurred_at=START + timedelta(minutes=n)) for n in (3, 2, 1)]
    told(rig, *newest_first)
    assert ids(rig.runs("ticket")) == ["e1", "e2", "e3"]


def test_a_source_that_nobody_knows_concerns_its_event_alone(rig: Rig) -> None:
    answers = ask(rig, event(), event(source="payment"), event("e2"))
    assert [type(one) for one in answers] == [Stored, NotFound, Stored]
    assert "did you mean payments" in str(answers[1])


def test_a_condition_that_raises_is_a_match_that_is_told(store: SqlStore) -> None:
    rig = Rig(store, subscribed({"ticket": {"on_event": {"source": "payments", "where": "contains(sum, `1`)"}}}))
    told(rig, event(data={"sum": 3}), event("e2", data={"sum": []}))
    (run,) = rig.runs("ticket")
    assert "cannot be evaluated" in run.note
    (notice,) = rig.named("condition.failed")
    assert (notice["event"], notice["job"]) == ("e1", "ticket")


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00", b'{"id": "e1", "x": "\\u0000 \\ud800"}', b"[" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900],
)
def test_no_body_makes_an_event_fail(rig: Rig, body: bytes) -> None:
    (stored,) = told(rig, replace(event(), body=body))
    assert len(stored.runs) == 1
    found = kept(rig, "e1")
    assert found is not None
    assert found.body == body
    rig.tick()
    assert rig.executor.of("ticket") == [stored.runs[0][1]]


def test_one_bad_member_does_not_take_the_others_with_it(rig: Rig) -> None:
    poison = replace(event("bad"), received_at="no instant")  # type: ignore[arg-type]
    answers = ask(rig, event(), poison, event("e2"))
    assert [isinstance(one, Stored) for one in answers] == [True, False, True]
    assert isinstance(answers[1], SchedulerError)
    assert ids(rig.runs("ticket")) == ["e1", "e2"]


def test_without_the_database_everybody_is_told(rig: Rig) -> None:
    rig.store.away = True
    assert all(isinstance(one, Unavailable) for one in ask(rig, event(), event("e2")))


# ------------------------------------------------------------ several nodes


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


# ------------------------------------------------------------ the thread


@pytest.fixture
def running(rig: Rig) -> Iterator[EventInbox]:
    rig.inbox.start()
    yield rig.inbox
    rig.inbox.stop()


def test_what_comes_while_a_commit_is_under_way_shares_the_next(rig: Rig, running: EventInbox) -> None:
    door, entered = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert door.wait(20)

    rig.store.begun = hold
    served: list[list[tuple[Any, Any]]] = []
    for number in range(30):
        running.submit([event(f"e{number}")], number, served.append)
        if number == 0:
            assert entered.wait(20)
    before = rig.store.writes
    door.set()
    until(lambda: sum(map(len, served)) == 30)
    assert [len(one) for one in served] == [1, 29]
    assert rig.store.writes == before + 2
    assert all(answers[0].id == f"e{ticket}" for one in served for ticket, answers in one)


def test_large_bodies_are_no_crowd(rig: Rig, running: EventInbox) -> None:
    """A thousand of them would be more than a transaction or a memory can take."""
    door, entered = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert door.wait(20)

    def large(number: int) -> NewEvent:
        return replace(event(f"e{number}"), body=b" " * (4 << 20))

    rig.store.begun = hold
    served: list[list[tuple[Any, Any]]] = []
    for number in range(10):
        running.submit([large(number)], number, served.append)
        if number == 0:
            assert entered.wait(20)
    door.set()
    until(lambda: sum(map(len, served)) == 10)
    assert max(map(len, served)) == 4


def test_a_run_of_an_event_asks_first_what_its_source_says(store: SqlStore) -> None:
    """Also a replay and a retry; not a run that somebody asked for without an event."""
    rig = Rig(store, subscribed(payments={"fetch_current": {"url": "https://x.test/{{ event.subject }}"}}))
    told(rig, event())
    rig.inbox.replay("payments", "e1", author="me")
    rig.desk.run_now("ticket", author="me", payload={"event": {"source": "payments"}}, has_payload=True)
    rig.tick()
    asked = {one.run.cause: one.fetch for one in rig.executor.started}
    assert asked[Cause.MANUAL] is None
    for cause in (Cause.EVENT, Cause.REPLAY):
        found = asked[cause]
        assert found is not None
        assert found.url == "https://x.test/{{ event.subject }}"


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
