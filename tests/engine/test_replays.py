"""What is asked for once more: events again, and requests that were refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from scheduler.core.errors import NotFound, Refused, Unavailable
from scheduler.core.event import NewEvent, Reject
from scheduler.core.model import Cause
from scheduler.core.signature import Refusal, Rejected
from scheduler.engine import inbox, refused
from scheduler.store.store import SqlStore
from tests.engine.doubles import START
from tests.engine.rig import Rig
from tests.engine.senders import event, kept, subscribed, told

REFUND = {"on_event": {"source": "payments", "types": "refund.*"}}


@pytest.fixture
def rig(store: SqlStore) -> Rig:
    return Rig(store, subscribed({"ticket": {}, "refund": REFUND}))


def test_a_replay_is_a_run_more_for_everybody_whom_it_concerns_today(rig: Rig) -> None:
    told(rig, event())
    rig.reload(subscribed({"ticket": {}, "refund": REFUND, "later": {}}))
    done = rig.inbox.replay("payments", "e1", author="me", reason="they lost it")
    assert [job for job, _ in done.runs] == ["ticket", "later"]
    assert done.passed == ("refund",)
    run = rig.run(done.runs[0][1])
    assert (run.cause, run.author, run.note) == (Cause.REPLAY, "me", "they lost it")
    assert run.payload["event"] == {**rig.run(rig.runs("ticket")[0].id).payload["event"], "via": "replay"}
    assert len(rig.runs("ticket")) == 2
    assert rig.woken == 2
    (notice,) = rig.named("event.replayed")
    assert (notice["event"], notice["runs"]) == ("e1", 2)


def test_every_replay_is_a_run(rig: Rig) -> None:
    told(rig, event())
    runs = {rig.inbox.replay("payments", "e1", author="me").runs[0][1] for _ in range(10)}
    assert len(runs) == 10
    assert len(rig.runs("ticket")) == 11


def test_a_replay_may_be_for_some_jobs_only(rig: Rig) -> None:
    rig.reload(subscribed({"ticket": {}, "other": {}}), drop_pending=True)
    told(rig, event())
    done = rig.inbox.replay("payments", "e1", author="me", jobs=["other"])
    assert ([job for job, _ in done.runs], done.passed) == (["other"], ("ticket",))


def test_what_cannot_be_replayed_is_told(rig: Rig) -> None:
    with pytest.raises(NotFound, match="no event e1 of payments"):
        rig.inbox.replay("payments", "e1", author="me")
    told(rig, event(type="chargeback"))
    with pytest.raises(NotFound, match="did you mean ticket"):
        rig.inbox.replay("payments", "e1", author="me", jobs=["tickets"])
    with pytest.raises(Refused, match="concerns no job of those named"):
        rig.inbox.replay("payments", "e1", author="me", jobs=["refund"])
    rig.store.away = True
    with pytest.raises(Unavailable):
        rig.inbox.replay("payments", "e1", author="me")


# ------------------------------------------------------------ refused requests


def reject(number: int = 1, source: str = "payments") -> Reject:
    why = "no secret signed this"
    headers = (("x-signature", "sha256=00"),)
    return Reject(0, source, START, Refusal.SIGNATURE_MISMATCH, why, headers, b'{"id": "e%d"}' % number)


def fixed(kept_request: Reject) -> NewEvent | Rejected:
    """As the receiver judges once the secret is right; of the second it still says no."""
    if b"e2" in kept_request.body:
        return Rejected(Refusal.SIGNATURE_MISMATCH, "still not")
    number = kept_request.body.decode().partition("e")[2].strip('"}')
    return event(f"e{number}", received_at=kept_request.at)


def keep(rig: Rig, *requests: Reject) -> None:
    for request in requests:
        rig.inbox.refuse(request)
    rig.inbox.tick(rig.store.now())


def left(rig: Rig, source: str = "payments") -> list[bytes]:
    with rig.store.read() as tx:
        return [one.body for one in tx.events.rejects(source, 10_000)]


def dropped(rig: Rig, source: str = "payments") -> tuple[int, int]:
    with rig.store.queries() as queries:
        found = queries.rejects(source)
    return found.kept, found.dropped


def test_what_was_refused_longer_ago_than_ids_are_kept_is_not_taken(store: SqlStore) -> None:
    """Its event may have come once more, been handled, and be forgotten."""
    rig = Rig(store, subscribed(payments={"keep": "3d"}))
    keep(rig, reject(1))
    told(rig, event("e1"))
    rig.turn(days=2)
    keep(rig, replace(reject(3), at=rig.clock.now()))
    rig.turn(days=2)
    done = rig.inbox.reverify("payments", fixed)
    assert [new.id for _, new in done.stored] == ["e3"]
    assert (done.refused, done.after) == ((), None)
    assert left(rig) == [b'{"id": "e1"}']
    rig.retention.tick(rig.clock.now())
    assert left(rig) == []
    assert dropped(rig) == (0, 0), "nobody misses it"


def test_what_was_refused_is_stored_once_it_is_right(rig: Rig) -> None:
    keep(rig, reject(1), reject(2), reject(3))
    done = rig.inbox.reverify("payments", fixed)
    assert [(old.body, new.id, new.new) for old, new in done.stored] == [
        (b'{"id": "e1"}', "e1", True),
        (b'{"id": "e3"}', "e3", True),
    ]
    assert [(old.body, why.why) for old, why in done.refused] == [(b'{"id": "e2"}', "still not")]
    assert len(rig.runs("ticket")) == 2
    assert left(rig) == [b'{"id": "e2"}']


def test_what_came_by_itself_meanwhile_is_a_duplicate(rig: Rig) -> None:
    keep(rig, reject())
    told(rig, event())
    done = rig.inbox.reverify("payments", fixed)
    assert [new.new for _, new in done.stored] == [False]
    assert len(rig.runs("ticket")) == 1
    assert left(rig) == []


def test_also_what_was_refused_a_moment_ago(rig: Rig) -> None:
    rig.inbox.refuse(reject())
    assert len(rig.inbox.reverify("payments", fixed).stored) == 1


def test_the_refused_are_verified_again_in_steps_the_oldest_first(rig: Rig) -> None:
    keep(rig, *(reject(number) for number in (1, 2, 3, 4)))
    done = rig.inbox.reverify("payments", fixed, limit=2)
    assert ([new.id for _, new in done.stored], len(done.refused)) == (["e1"], 1)
    assert done.after is not None
    done = rig.inbox.reverify("payments", fixed, limit=2, after=done.after)
    assert ([new.id for _, new in done.stored], done.after) == (["e3", "e4"], None)


def test_the_noise_of_strangers_hides_nobody_who_signed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "AT_ONCE", 5)
    monkeypatch.setattr(refused, "KEEP", 5)
    noise = [replace(reject(number), reason=Refusal.SIGNATURE_MISSING) for number in range(10, 40)]
    keep(rig, reject(1), *noise, reject(3), *noise)
    assert len(left(rig)) == 7

    def signed(one: Reject) -> NewEvent | Rejected:
        return Rejected(one.reason, "noise") if one.reason is Refusal.SIGNATURE_MISSING else fixed(one)

    assert [new.id for _, new in rig.inbox.reverify("payments", signed).stored] == ["e1", "e3"]
    assert dropped(rig) == (5, 55)


def test_what_was_stored_is_not_refused_any_more_if_another_one_could_not_be(rig: Rig) -> None:
    keep(rig, reject(1), reject(3))

    def elsewhere(one: Reject) -> NewEvent | Rejected:
        found = fixed(one)
        return replace(found, source="gone") if isinstance(found, NewEvent) and found.id == "e1" else found

    with pytest.raises(NotFound):
        rig.inbox.reverify("payments", elsewhere)
    assert left(rig) == [b'{"id": "e1"}']


def test_a_source_that_is_not_there(rig: Rig) -> None:
    with pytest.raises(NotFound, match="no source 'payment'"):
        rig.inbox.reverify("payment", fixed)


def test_a_flood_of_refused_requests_costs_no_more_than_a_few_rows(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "AT_ONCE", 5)
    monkeypatch.setattr(refused, "KEEP", 7)
    keep(rig, *(reject(number) for number in range(1000)))
    assert left(rig) == [b'{"id": "e%d"}' % number for number in (995, 996, 997, 998, 999)]
    assert dropped(rig) == (5, 995)
    keep(rig, *(reject(number) for number in (1000, 1001, 1002)), reject(1, "other"))
    assert len(left(rig)) == 7
    assert dropped(rig) == (7, 996)
    assert dropped(rig, "other") == (1, 0)


def test_large_refused_requests_are_bounded_by_their_bytes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused, "AT_ONCE_BYTES", 250)
    monkeypatch.setattr(refused, "KEEP_BYTES", 350)
    large = [replace(reject(), body=b"x" * 100) for _ in range(4)]
    keep(rig, *large)
    assert dropped(rig) == (2, 2)
    keep(rig, *large)
    assert dropped(rig) == (3, 5)
    keep(rig, replace(reject(), body=b"x" * 1000))
    assert dropped(rig) == (1, 8)


def test_what_was_refused_is_on_disk_when_somebody_asks(rig: Rig) -> None:
    rig.inbox.refuse(reject())
    rig.inbox.keep_refused()
    assert dropped(rig) == (1, 0)


def test_refusing_waits_for_nothing(rig: Rig) -> None:
    rig.store.away = True
    rig.inbox.refuse(reject())
    with pytest.raises(Unavailable):
        rig.inbox.tick(rig.clock.now())


# ------------------------------------------------------------ paused sources


def test_events_of_a_paused_source_are_held_and_make_their_runs_later(store: SqlStore) -> None:
    rig = Rig(store, subscribed(payments={"paused": True}))
    answers = told(rig, event(), event("e2"), event())
    assert [(one.new, one.runs) for one in answers] == [(True, ()), (True, ()), (False, ())]
    rig.seconds(3)
    assert rig.runs() == []
    found = kept(rig, "e1")
    assert found is not None
    assert found.held
    rig.reload(subscribed())
    rig.tick()
    assert [run.key for run in rig.runs("ticket")] == ["event:payments:e1", "event:payments:e2"]
    assert len(rig.named("run.planned")) == 2
    rig.seconds(3)
    assert len(rig.runs("ticket")) == 2
    found = kept(rig, "e1")
    assert found is not None
    assert not found.held


def test_a_job_that_comes_while_a_source_is_paused_gets_what_comes_after_it(store: SqlStore) -> None:
    rig = Rig(store, subscribed(payments={"paused": True}))
    told(rig, event(received_at=rig.clock.now()))
    rig.turn(seconds=10)
    rig.reload(subscribed({"ticket": {}, "later": {}}, payments={"paused": True}))
    told(rig, event("e2", received_at=rig.turn(seconds=10)))
    rig.reload(subscribed({"ticket": {}, "later": {}}))
    rig.tick()
    assert len(rig.runs("ticket")) == 2
    assert [run.key for run in rig.runs("later")] == ["event:payments:e2"]


def test_many_held_events_do_not_keep_a_turn_from_ending(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "TURN", 0.0)
    rig = Rig(store, subscribed(payments={"paused": True}))
    told(rig, *(event(f"e{number}") for number in range(250)))
    rig.reload(subscribed())
    assert [rig.inbox.tick(rig.clock.now()) for _ in range(4)] == [100, 100, 50, 0]
    assert len(rig.runs("ticket")) == 250


def test_two_nodes_that_let_events_go_at_once_make_one_run(store: SqlStore) -> None:
    rig = Rig(store, subscribed(payments={"paused": True}))
    other = Rig(store, subscribed(payments={"paused": True}), rig.clock)
    told(rig, *(event(f"e{number}") for number in range(250)))
    rig.reload(subscribed())
    other.keeper.tick(rig.clock.now())
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda node: node.inbox.tick(node.clock.now()), (rig, other)))
    assert sum(done) == 250, "each is let go once"
    assert len(rig.runs("ticket")) == 250


def test_a_held_event_can_be_replayed(store: SqlStore) -> None:
    rig = Rig(store, subscribed(payments={"paused": True}))
    told(rig, event())
    assert len(rig.inbox.replay("payments", "e1", author="me").runs) == 1
