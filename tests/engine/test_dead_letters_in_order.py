"""Dead letters of a job that takes the events of a subject one at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.model import Status, WaitsFor
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig, failed
from tests.engine.senders import event, ids, subscribed, told

HOLD = {"source": "payments", "order": "subject", "on_dead": "hold"}
GO_ON = {"source": "payments", "order": "subject"}


def text(on_event: dict[str, str], retries: object = 0) -> str:
    return subscribed({"ticket": {"on_event": on_event, "retries": retries}})


def three(rig: Rig) -> None:
    """Two events of one order and one of another."""
    for number, about in ((1, "a"), (2, "a"), (3, "b")):
        told(rig, event(f"e{number}", subject=about, occurred_at=START + timedelta(minutes=number)))


def running(rig: Rig) -> list[str]:
    return sorted(ids([run for run in rig.runs("ticket") if run.status is Status.RUNNING]))


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    """One whose first event of `a` is a dead letter that holds up the second."""
    rig = Rig(store, text(HOLD))
    three(rig)
    rig.tick()
    assert running(rig) == ["e1", "e3"]
    rig.finish(failed())
    rig.tick(seconds=1)
    assert rig.statuses("ticket") == ["FAILED", "PENDING", "FAILED"]
    return rig


def test_what_waits_behind_a_dead_letter_waits_visibly(rig: Rig) -> None:
    first, second, _ = rig.runs("ticket")
    rig.seconds(5)
    told(rig, event("e4", subject="b", occurred_at=START + timedelta(minutes=4)))
    told(rig, event("e5", subject="c", occurred_at=START + timedelta(minutes=5)))
    rig.tick(seconds=1)
    assert running(rig) == ["e5"]
    assert rig.run(second.id).waits_for is WaitsFor.LOCK
    waiting = rig.detail(second.id).waiting
    assert waiting is not None
    assert (waiting.kind, waiting.holder_run) == ("lock", first.id)


def test_discarding_it_lets_the_others_go_on(rig: Rig) -> None:
    first = rig.runs("ticket")[0]
    assert rig.desk.discard([first.id], None, author="me") == [first.id]
    rig.tick()
    assert running(rig) == ["e2"]


def test_retrying_it_comes_before_what_waits(rig: Rig) -> None:
    first = rig.runs("ticket")[0]
    again = rig.desk.retry(first.id, author="me")
    rig.tick()
    assert rig.run(again.id).status is Status.RUNNING
    assert (again.lock, again.rank, again.event) == (first.lock, first.rank, first.event)
    assert rig.runs("ticket")[1].status is Status.PENDING
    rig.finish()
    rig.tick()
    assert rig.runs("ticket")[1].status is Status.RUNNING


def test_a_retry_that_fails_holds_them_up_again(rig: Rig) -> None:
    rig.desk.retry(rig.runs("ticket")[0].id, author="me")
    rig.tick()
    rig.finish(failed())
    rig.seconds(3)
    assert rig.runs("ticket")[1].status is Status.PENDING


def test_canceling_what_is_tried_holds_nobody_up(store: SqlStore) -> None:
    rig = Rig(store, text(HOLD))
    three(rig)
    rig.tick()
    rig.desk.cancel(rig.runs("ticket")[0].id, author="me")
    rig.tick(seconds=1)
    rig.tick(seconds=1)
    assert "e2" in running(rig)


def test_a_job_that_says_go_on_does_so_from_then_on(rig: Rig) -> None:
    rig.reload(text(GO_ON))
    rig.tick()
    assert running(rig) == ["e2"]


def test_one_that_goes_on_is_held_up_by_nobody(store: SqlStore) -> None:
    rig = Rig(store, text(GO_ON))
    three(rig)
    rig.tick()
    rig.finish(failed())
    rig.tick(seconds=1)
    assert running(rig) == ["e2"]


def test_who_comes_later_is_told_of_the_dead_before_it(store: SqlStore) -> None:
    rig = Rig(store, text(GO_ON))
    three(rig)
    told(rig, event("e4", subject="a", occurred_at=START + timedelta(minutes=4)))
    rig.tick()
    rig.finish(failed())
    rig.tick(seconds=1)
    rig.finish(failed())
    rig.tick(seconds=1)
    heard = {one.run.payload["event"]["id"]: one.run.payload["dead_before"] for one in rig.executor.started}
    assert heard == {"e1": [], "e3": [], "e2": ["e1"], "e4": ["e1", "e2"]}
    first = rig.runs("ticket")[0]
    rig.desk.discard([first.id], None, author="me")
    rig.inbox.replay("payments", "e4", author="me")
    rig.finish()
    rig.tick(seconds=1)
    assert rig.executor.started[-1].run.payload["dead_before"] == ["e2"]
    again = rig.desk.retry(rig.runs("ticket")[1].id, author="me")
    rig.finish()
    rig.tick(seconds=1)
    assert rig.executor.started[-1].run.id == again.id
    assert rig.executor.started[-1].run.payload["dead_before"] == [], "only what is older than itself"
