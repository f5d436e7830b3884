"""Events of one subject one at a time, the oldest first, whichever way and however late they come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.event import NewEvent, Via
from scheduler.core.model import Status, WaitsFor
from scheduler.engine import inbox
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig, failed
from tests.engine.senders import event, ids, kept, subscribed, told

ORDERED = {"on_event": {"source": "payments", "order": "subject"}, "retries": ["10s"]}


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, subscribed({"ticket": ORDERED}))


def at(minute: float, name: str = "", about: str = "a", **how: Any) -> NewEvent:
    occurred = START + timedelta(minutes=minute)
    return event(name or f"e{minute}", subject=about, occurred_at=occurred, **how)


def running(rig: Rig) -> list[str]:
    return sorted(ids([run for run in rig.runs("ticket") if run.status is Status.RUNNING]))


def handled(rig: Rig) -> list[str]:
    """The events whose runs completed, in the order in which that happened, one at a time."""
    done: list[str] = []
    while rig.executor.live:
        assert len(rig.executor.live) == 1
        done += running(rig)
        rig.finish()
        rig.tick()
    return done


def said(rig: Rig) -> Mapping[str, Any]:
    """What the runs were told of their events, by their ids."""
    payloads = [rig.run(run.id).payload for run in rig.runs("ticket")]
    return {one["event"]["id"]: one["event"] for one in payloads}


def test_the_oldest_of_a_subject_is_next_whenever_it_came(rig: Rig) -> None:
    for minute in (5, 3, 9, 1, 7):
        told(rig, at(minute))
    rig.tick()
    assert handled(rig) == ["e1", "e3", "e5", "e7", "e9"]


def test_subjects_do_not_wait_for_each_other(rig: Rig) -> None:
    told(rig, at(1, "a1"), at(2, "a2"), at(1, "b1", "b"), at(2, "b2", "b"))
    rig.tick()
    assert running(rig) == ["a1", "b1"]
    assert all(run.waits_for is WaitsFor.LOCK for run in rig.runs("ticket") if run.status is Status.PENDING)


def test_an_older_event_that_is_found_later_runs_next_and_is_marked(rig: Rig) -> None:
    """R16: the webhook of e1 never came; the scan finds it when e2 is at work and e3 waits."""
    told(rig, at(2), at(3))
    rig.tick()
    told(rig, at(1, via=Via.SCAN))
    assert handled(rig) == ["e2", "e1", "e3"]
    assert {name: one["late"] for name, one in said(rig).items()} == {"e1": True, "e2": False, "e3": False}


@pytest.mark.parametrize("together", [True, False])
def test_of_two_that_occurred_at_once_the_smaller_id_is_first(rig: Rig, together: bool) -> None:
    """Providers tell the time in whole seconds."""
    told(rig, at(0, "first"))
    rig.tick()
    if together:
        told(rig, at(1, "b"), at(1, "a"))
    else:
        told(rig, at(1, "b"))
        told(rig, at(1, "a"))
    assert handled(rig) == ["first", "a", "b"]
    assert said(rig)["a"]["late"] is not together, "b was there before it"


def test_late_is_about_the_subject(rig: Rig) -> None:
    told(rig, at(5, about="a"))
    told(rig, at(1, "b1", "b"), event("untimed", subject="a"), event("nobody", occurred_at=START))
    assert not any(one["late"] for one in said(rig).values())


def _paused(paused: bool) -> str:
    return subscribed({"ticket": ORDERED}, payments={"paused": paused})


def test_what_was_held_is_late_where_a_newer_one_was_handed_on_before(rig: Rig) -> None:
    """R16: e2 is handled, its source is paused, a scan finds e1; what is held with it is no reason."""
    told(rig, at(2), at(2, "b2", "b"))
    rig.reload(_paused(True))
    told(rig, at(1, via=Via.SCAN), at(3), at(4), at(3, "b3", "b"))
    rig.reload(_paused(False))
    rig.tick()
    late = {name: one["late"] for name, one in said(rig).items()}
    assert late == {"e2": False, "b2": False, "e1": True, "e3": False, "e4": False, "b3": False}


def test_what_is_let_go_in_parts_is_late_where_the_parts_are_out_of_order(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "TOGETHER", 2)
    rig.reload(_paused(True))
    told(rig, at(3), at(4))
    told(rig, at(1), at(5))
    rig.reload(_paused(False))
    told(rig, at(6, "fresh", "b"), at(2, "old"))
    rig.tick()
    late = {name: one["late"] for name, one in said(rig).items()}
    assert late == {"fresh": False, "old": False, "e3": False, "e4": False, "e1": True, "e5": False}


def test_what_was_held_without_a_time_is_as_old_as_its_coming(rig: Rig) -> None:
    rig.reload(_paused(True))
    told(rig, event("held", subject="a", received_at=START))
    rig.reload(_paused(False))
    told(rig, event("fresh", subject="a", received_at=rig.turn(minutes=1)))
    rig.tick()
    assert {name: one["late"] for name, one in said(rig).items()} == {"fresh": False, "held": True}


def test_also_jobs_without_an_order_are_told_what_is_late(store: SqlStore) -> None:
    """G14: nobody guarantees the order; both are stored, and the handler can tell."""
    rig = Rig(store, subscribed())
    told(rig, at(2))
    told(rig, at(1))
    assert {name: one["late"] for name, one in said(rig).items()} == {"e2": False, "e1": True}
    assert kept(rig, "e1") is not None
    assert kept(rig, "e2") is not None


def test_a_failing_event_holds_its_subject_through_its_retries(rig: Rig) -> None:
    told(rig, at(1), at(2), at(1, "b1", "b"))
    rig.tick()
    rig.finish(failed())
    rig.seconds(5)
    assert running(rig) == [], "e1 waits for its second attempt, and e2 for e1"
    rig.seconds(8)
    assert running(rig) == ["b1", "e1"]
    rig.finish(failed())
    rig.tick(seconds=1)
    assert running(rig) == ["e2"], "e1 is a dead letter now"


def test_an_older_one_need_not_wait_for_the_retries_of_a_newer(rig: Rig) -> None:
    told(rig, at(2))
    rig.tick()
    rig.finish(failed())
    told(rig, at(1))
    rig.tick(seconds=1)
    assert running(rig) == ["e1"]


def test_events_without_a_subject_do_not_wait(rig: Rig) -> None:
    told(rig, *(event(f"e{n}", occurred_at=START) for n in range(3)))
    rig.tick()
    assert running(rig) == ["e0", "e1", "e2"]


def test_a_replay_has_its_place_in_the_line(rig: Rig) -> None:
    told(rig, at(1))
    rig.tick()
    rig.finish()
    told(rig, at(2), at(3))
    rig.tick()
    rig.inbox.replay("payments", "e1", author="me")
    rig.finish()
    rig.tick()
    (live,) = rig.executor.live
    assert rig.run(live).payload["event"]["id"] == "e1"


def test_what_waits_keeps_its_line_when_its_job_changes(rig: Rig) -> None:
    told(rig, at(3), at(2), at(1))
    rig.reload(subscribed({"ticket": {**ORDERED, "priority": 5}}))
    rig.tick()
    assert handled(rig) == ["e1", "e2", "e3"]
