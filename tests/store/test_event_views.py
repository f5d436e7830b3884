"""Events as people are shown them, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.errors import InvalidInput
from scheduler.core.event import NewEvent, Reject, Via
from scheduler.core.event_queries import EventFilter
from scheduler.core.model import Status
from scheduler.core.signature import Refusal
from scheduler.store.store import SqlStore
from tests.store.world import MINUTE, T0, add, claim, new_run, set_up, settle, settlement


def told(event: str, source: str = "shop", via: Via = Via.WEBHOOK, **more: object) -> NewEvent:
    given: dict[str, object] = {"received_at": T0, "body": b'{"n": 1}', **more}
    return NewEvent(source, event, via, **given)  # type: ignore[arg-type]


def put(store: SqlStore, *events: NewEvent) -> dict[str, int]:
    with store.begin() as tx:
        return {event: seq for (_, event), (seq, _) in tx.events.add(events).items()}


def ids(store: SqlStore, which: EventFilter | None = None, limit: int = 50) -> list[str]:
    with store.queries() as queries:
        return [one.id for one in queries.events(which or EventFilter(), limit).events]


def test_pages_leave_nothing_out(store: SqlStore) -> None:
    put(store, *(told(f"e{number}") for number in range(5)))
    with store.queries() as queries:
        first = queries.events(EventFilter(), 2)
        assert [one.id for one in first.events] == ["e4", "e3"]
        assert (first.events[0].body, first.cursor is None) == (b"", False)
    put(store, told("later"))
    with store.queries() as queries:
        second = queries.events(EventFilter(), 2, first.cursor)
        third = queries.events(EventFilter(), 2, second.cursor)
        assert [one.id for one in (*second.events, *third.events)] == ["e2", "e1", "e0"]
        assert third.cursor is None
        with pytest.raises(InvalidInput, match="not one of ours"):
            queries.events(EventFilter(), 2, "r1s1")


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (EventFilter(source="shop"), ["c", "b", "a"]),
        (EventFilter(types=("order.*",)), ["c", "a"]),
        (EventFilter(types=("ORDER.*",)), []),
        (EventFilter(types=("order.paid", "x_[%?]")), ["other", "a"]),
        (EventFilter(types=("x?[%?]", "x_[%_]")), []),
        (EventFilter(subject="o1"), ["b", "a"]),
        (EventFilter(via=Via.SCAN), ["c"]),
        (EventFilter(missed=True), ["c"]),
        (EventFilter(since=T0 + MINUTE), ["c", "b"]),
        (EventFilter(until=T0 + MINUTE), ["other", "a"]),
        (EventFilter(source="shop", since=T0 + MINUTE, until=T0 + 2 * MINUTE), ["b"]),
    ],
)
def test_filters(store: SqlStore, which: EventFilter, expected: list[str]) -> None:
    put(
        store,
        told("a", type="order.paid", subject="o1"),
        told("b", type="customer.new", subject="o1", received_at=T0 + MINUTE),
        told("c", type="order.sent", via=Via.SCAN, found_by="scan", received_at=T0 + 2 * MINUTE),
        told("other", "bank", type="x_[%?]"),
    )
    assert sorted(ids(store, which)) == sorted(expected)


def test_a_missed_event_whose_webhook_comes_is_missed_no_more(store: SqlStore) -> None:
    put(store, told("a", via=Via.SCAN, found_by="scan"))
    put(store, told("a", received_at=T0 + MINUTE))
    assert ids(store, EventFilter(missed=True)) == []


def test_an_event_is_shown_with_its_runs_and_is_unhandled_until_each_job_has_done_its_own(store: SqlStore) -> None:
    set_up(store, ("one", "two"))
    seqs = put(store, told("a"), told("nobody"))
    add(store, new_run("one", event=seqs["a"]), new_run("two", event=seqs["a"]))
    unhandled = EventFilter(unhandled=True)
    claimed = {run.job: run for run in claim(store)}
    settle(store, settlement(claimed["one"]))
    with store.queries() as queries:
        detail = queries.event("shop", "a")
        assert detail is not None
        assert detail.event.body == b'{"n": 1}'
        assert [(run.job, run.status) for run in detail.runs] == [("one", Status.COMPLETED), ("two", Status.RUNNING)]
        assert queries.event("shop", "none") is None
    assert ids(store, unhandled) == ["a"]
    settle(store, settlement(claimed["two"], Status.FAILED))
    assert ids(store, unhandled) == ["a"]
    add(store, new_run("two", event=seqs["a"]))
    settle(store, *map(settlement, claim(store)))
    assert ids(store, unhandled) == []
    with store.queries() as queries:
        page = queries.events(EventFilter(), 50)
    assert [run.job for run in page.runs[seqs["a"]]] == ["one", "two", "two"]
    assert seqs["nobody"] not in page.runs


def test_what_is_held_is_unhandled_and_counted(store: SqlStore) -> None:
    seqs = put(store, told("a", held=True), told("b", held=True), told("c"), told("d", "bank", held=True))
    assert ids(store, EventFilter(source="shop", unhandled=True)) == ["b", "a"]
    with store.begin() as tx:
        tx.events.release([seqs["a"]])
    with store.queries() as queries:
        assert queries.held() == {"shop": 1, "bank": 1}


def test_whose_event_it_is(store: SqlStore) -> None:
    put(store, told("a"), told("a", "bank"), told("b", "bank"))
    with store.queries() as queries:
        assert queries.sources_of("a", ["shop", "bank", "none"]) == ["bank", "shop"]
        assert queries.sources_of("b", ["shop"]) == []


def test_refused_requests_are_shown_until_they_are_accepted(store: SqlStore) -> None:
    def reject(source: str, number: int) -> Reject:
        at = T0 + timedelta(seconds=number)
        return Reject(0, source, at, Refusal.SIGNATURE_MISMATCH, "no", (("a", "b"),), b"\x00\xff", "q=1")

    with store.begin() as tx:
        tx.events.reject(
            [reject(source, number) for number, source in enumerate(("shop", "bank", "shop"))], 10, 1 << 20
        )
    with store.queries() as queries:
        found = queries.rejects().rejects
        assert [one.at.second for one in found] == [2, 1, 0]
        assert (found[0].body, found[0].headers, found[0].query) == (b"\x00\xff", (("a", "b"),), "q=1")
        newest = queries.rejects("shop", 1)
        assert ([one.at.second for one in newest.rejects], newest.kept, newest.dropped) == ([2], 2, 0)
    with store.begin() as tx:
        tx.events.accept([found[0].seq], T0)
    with store.queries() as queries:
        assert [one.at.second for one in queries.rejects("shop").rejects] == [0]
