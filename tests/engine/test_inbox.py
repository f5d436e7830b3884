"""Events come in: stored once, and one run for every job that they concern."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler.core.errors import NotFound, SchedulerError, Unavailable
from scheduler.core.event import Stored, Via
from scheduler.core.model import Cause
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig
from tests.engine.senders import ask, event, ids, kept, subscribed, told


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, subscribed({"ticket": {}, "refund": {"on_event": {"source": "payments", "types": "refund.*"}}}))


def test_an_event_is_stored_and_every_job_that_it_concerns_has_its_run(store: SqlStore) -> None:
    """G10: it is answered when that is on disk, before anything of it is at work."""
    rig = Rig(store, subscribed({"one": {}, "two": {}, "none": {"on_event": {"source": "payments", "types": "no.*"}}}))
    (stored,) = told(rig, event("e1", data={"sum": 3}))
    assert stored.new
    assert [job for job, _ in stored.runs] == ["one", "two"]
    assert [(run.job, run.cause, run.key) for run in rig.runs()] == [
        ("one", Cause.EVENT, "event:payments:e1"),
        ("two", Cause.EVENT, "event:payments:e1"),
    ]
    assert rig.executor.started == []
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
