"""The inbox: what is stored, what a second telling changes, what scans see, what goes with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.core.compensator import Window
from scheduler.core.event import Event, Known, NewEvent, Reject, Via
from scheduler.core.model import Status
from scheduler.core.signature import Refusal
from scheduler.store import unlisted as unlisted_module
from scheduler.store.store import SqlStore
from tests.store.world import DAY, HOUR, MINUTE, SECOND, T0, add, claim, new_run, set_up, settle, settlement

SOURCE = "shop"
NEVER = Window(T0 - DAY, T0 - DAY)


def told(event: str, **changes: Any) -> NewEvent:
    fields: dict[str, Any] = {"source": SOURCE, "id": event, "via": Via.WEBHOOK, "received_at": T0, "body": b"{}"}
    return NewEvent(**{**fields, **changes})


def found(event: str, job: str = "scan", **changes: Any) -> NewEvent:
    return told(event, via=Via.SCAN, found_by=job, vouched_by="api", **changes)


def put(store: SqlStore, *events: NewEvent) -> dict[tuple[str, str], tuple[int, bool]]:
    with store.begin() as tx:
        return tx.events.add(events)


def get(store: SqlStore, event: str, source: str = SOURCE) -> Event:
    with store.read() as tx:
        one = tx.events.get(source, event)
    assert one is not None
    return one


def known(store: SqlStore, *ids: str, source: str = SOURCE) -> list[str]:
    with store.read() as tx:
        return sorted(tx.events.known(source, ids))


FULL = NewEvent(
    SOURCE,
    "evt_ü-1",
    Via.WEBHOOK,
    T0,
    b"\x00\xff{\\x41}'\"" * 300,
    "order.paid",
    "order-7",
    T0 - MINUTE,
    "application/json",
    (("x-id", "1"), ("x-id", '\u00ff\\ "')),
    "env SECRET",
    "",
    ("type: there is nothing at $.type",),
    held=True,
)


def test_an_event_comes_back_as_it_was_told(store: SqlStore) -> None:
    answer = put(store, FULL)
    seq, new = answer[SOURCE, "evt_ü-1"]
    assert new
    expected = Event(
        seq=seq,
        webhook_at=T0,
        **{name: getattr(FULL, name) for name in NewEvent.__dataclass_fields__},
    )
    assert get(store, "evt_ü-1") == expected
    with store.read() as tx:
        assert tx.events.by_seq([seq, seq + 1]) == {seq: expected}
        seen = Known(expected.seq, expected.received_at, expected.found_by, expected.missed)
        assert tx.events.known(SOURCE, ["evt_ü-1", "x"]) == {"evt_ü-1": seen}
        assert tx.events.get(SOURCE, "evt_ü-2") is None
        assert tx.events.get("other", "evt_ü-1") is None


def test_order_of_insertion_is_the_order_of_numbers(store: SqlStore) -> None:
    put(store, told("before"))
    answer = put(store, told("z"), told("before"), told("a"), told("a", source="other"), told("m"))
    assert answer[SOURCE, "before"][1] is False
    seqs = [answer[key][0] for key in ((SOURCE, "z"), (SOURCE, "a"), ("other", "a"), (SOURCE, "m"))]
    assert seqs == sorted(seqs)
    assert list(answer) == [(SOURCE, "z"), (SOURCE, "before"), (SOURCE, "a"), ("other", "a"), (SOURCE, "m")]
    with store.read() as tx:
        assert {event.id for event in tx.events.by_seq(seqs).values()} == {"z", "a", "m"}


def test_nothing_to_store(store: SqlStore) -> None:
    assert put(store) == {}


def test_a_second_webhook_is_counted_and_changes_nothing_else(store: SqlStore) -> None:
    first = put(store, told("e", body=b"first", subject="s"))[SOURCE, "e"]
    again = put(store, *[told("e", body=b"other", subject="t", received_at=T0 + HOUR)] * 3)[SOURCE, "e"]
    assert (first[1], again) == (True, (first[0], False))
    event = get(store, "e")
    assert (event.body, event.subject, event.webhook_at, event.duplicates) == (b"first", "s", T0, 3)


def test_the_same_event_several_times_in_one_commit(store: SqlStore) -> None:
    assert put(store, told("e"), told("e"), told("f"), told("e"))[SOURCE, "e"][1]
    assert (get(store, "e").duplicates, get(store, "f").duplicates) == (2, 0)


def test_a_late_webhook_of_what_a_scan_found(store: SqlStore) -> None:
    put(store, found("e"))
    assert get(store, "e").missed
    assert put(store, told("e", received_at=T0 + HOUR), told("e", received_at=T0 + HOUR))[SOURCE, "e"][1] is False
    event = get(store, "e")
    assert (event.via, event.scan_at, event.webhook_at, event.duplicates) == (Via.SCAN, T0, T0 + HOUR, 1)
    assert not event.missed


def test_what_a_scan_finds_in_the_list_is_no_duplicate(store: SqlStore) -> None:
    seq, _ = put(store, told("e"))[SOURCE, "e"]
    for hours in (1, 2):
        with store.begin() as tx:
            tx.events.listed("scan", [seq], T0 + hours * HOUR)
    put(store, found("e", received_at=T0 + 3 * HOUR))
    event = get(store, "e")
    assert (event.via, event.scan_at, event.duplicates, event.webhook_at) == (Via.WEBHOOK, T0 + HOUR, 0, T0)


def test_ids_belong_to_their_source(store: SqlStore) -> None:
    put(store, told("e"), told("e", source="other"), told("f", source="other"))
    assert (known(store, "e", "f"), known(store, "e", "f", source="other")) == (["e"], ["e", "f"])
    assert known(store, "e", source="third") == []


def test_a_commit_that_fails_leaves_nothing(store: SqlStore) -> None:
    try:
        with store.begin() as tx:
            tx.events.add([told("e")])
            raise KeyError
    except KeyError:
        pass
    assert known(store, "e") == []
    assert put(store, told("e"))[SOURCE, "e"][1]


def test_large_bodies_travel_apart(store: SqlStore) -> None:
    bodies = [bytes([number]) * (3 << 20) for number in range(5)]
    put(store, *[told(f"e{number}", body=body) for number, body in enumerate(bodies)])
    assert [get(store, f"e{number}").body for number in range(5)] == bodies


def _unlisted(
    store: SqlStore,
    start: datetime,
    end: datetime,
    job: str = "scan",
    limit: int = 100,
    came: Window = NEVER,
) -> tuple[int, list[str]]:
    with store.read() as tx:
        return tx.events.unlisted(SOURCE, Window(start, end), came, job, limit)


def test_webhooks_that_no_list_of_this_job_had(store: SqlStore) -> None:
    answer = put(
        store,
        told("early", occurred_at=T0 - SECOND),
        told("start", occurred_at=T0),
        told("listed", occurred_at=T0 + SECOND),
        told("by another", occurred_at=T0 + 2 * SECOND),
        told("end", occurred_at=T0 + HOUR),
        told("late", occurred_at=T0 + HOUR + SECOND),
        told("undated"),
        told("made up", occurred_at=T0, vouched_by="send-test"),
        told("elsewhere", occurred_at=T0, source="other"),
        found("injected", occurred_at=T0),
    )
    with store.begin() as tx:
        tx.events.listed("scan", [answer[SOURCE, "listed"][0]], T0)
        tx.events.listed("nightly", [answer[SOURCE, "by another"][0]], T0)
    assert _unlisted(store, T0, T0 + HOUR) == (3, ["start", "by another", "end"])
    assert _unlisted(store, T0, T0 + HOUR, limit=1) == (3, ["start"])
    assert _unlisted(store, T0 + 3 * SECOND, T0 + MINUTE) == (0, [])
    # its webhook came later, and the list did have it
    put(store, told("injected"))
    assert _unlisted(store, T0, T0 + HOUR)[0] == 3
    assert _unlisted(store, T0, T0 + HOUR, job="nightly") == (4, ["start", "injected", "listed", "end"])


def test_webhooks_without_a_time_are_compared_by_when_they_came(store: SqlStore) -> None:
    answer = put(
        store,
        told("early", received_at=T0 - SECOND),
        told("first", received_at=T0),
        told("listed", received_at=T0 + SECOND),
        told("last", received_at=T0 + HOUR),
        told("late", received_at=T0 + HOUR + SECOND),
        told("made up", received_at=T0, vouched_by="send-test"),
        told("elsewhere", received_at=T0, source="other"),
        told("dated", received_at=T0, occurred_at=T0 - DAY),
        told("of the window", received_at=T0 - HOUR, occurred_at=T0 + DAY),
    )
    with store.begin() as tx:
        tx.events.listed("scan", [answer[SOURCE, "listed"][0]], T0)
    came = Window(T0, T0 + HOUR)
    assert _unlisted(store, T0 + DAY, T0 + DAY, came=came) == (3, ["of the window", "first", "last"])
    assert _unlisted(store, T0 + DAY, T0 + DAY, came=came, limit=2) == (3, ["of the window", "first"])
    assert _unlisted(store, T0 + DAY, T0 + DAY, came=Window(T0, T0 - SECOND)) == (1, ["of the window"])
    with store.read() as tx:
        known = tx.events.known(SOURCE, ["first", "dated"])
    assert (known["first"].undated, known["dated"].undated) == (True, False)


@pytest.mark.parametrize("dated", [True, False])
def test_a_long_window_is_compared_in_stretches(store: SqlStore, monkeypatch: pytest.MonkeyPatch, dated: bool) -> None:
    monkeypatch.setattr(unlisted_module, "STRETCH", 3)
    at = [0, 1, 1, 2, 2, 2, 2, 2, 2, 3, 4, 5, 5, 6]
    when = "occurred_at" if dated else "received_at"
    answer = put(store, *[told(f"e{n:02}", **{when: T0 + hours * HOUR}) for n, hours in enumerate(at)])
    with store.begin() as tx:
        tx.events.listed("scan", [answer[SOURCE, "e01"][0], answer[SOURCE, "e09"][0]], T0)
    rest = [f"e{n:02}" for n in range(len(at)) if n not in (1, 9)]

    def lacking(start: datetime, end: datetime, limit: int = 100) -> tuple[int, list[str]]:
        if dated:
            return _unlisted(store, start, end, limit=limit)
        return _unlisted(store, NEVER.start, NEVER.end, limit=limit, came=Window(start, end))

    assert lacking(T0, T0 + 6 * HOUR) == (12, rest)
    assert lacking(T0, T0 + 6 * HOUR, 5) == (12, rest[:5])
    assert lacking(T0 + HOUR, T0 + 5 * HOUR) == (10, rest[1:11])


def test_the_newest_event_of_each_subject(store: SqlStore) -> None:
    answer = put(
        store,
        told("b", subject="s", occurred_at=T0),
        told("c", subject="s", occurred_at=T0),
        told("a", subject="s", occurred_at=T0),
        told("z", subject="s", occurred_at=T0 - DAY),
        told("undated", subject="s"),
        told("only undated", subject="u"),
        told("x", subject="t", occurred_at=T0 + DAY),
        told("y", subject="s", occurred_at=T0 + DAY, source="other"),
        told("held", subject="s", occurred_at=T0 + DAY, held=True),
        told("undated later", subject="t", received_at=T0 + 2 * DAY),
    )
    with store.read() as tx:
        found = tx.events.newest(SOURCE, ["s", "t", "u", "none"])
        assert tx.events.newest(SOURCE, []) == {}
    assert found == {
        "s": (T0, "undated"),
        "t": (T0 + 2 * DAY, "undated later"),
        "u": (T0, "only undated"),
    }
    with store.begin() as tx:
        tx.events.release([answer[SOURCE, "held"][0]])
        assert tx.events.newest(SOURCE, ["s"]) == {"s": (T0 + DAY, "held")}


def test_held_events_are_released_once(store: SqlStore) -> None:
    answer = put(
        store,
        told("b", held=True, body=b"1"),
        told("a", held=True),
        told("free"),
        told("o", source="other", held=True),
    )

    def held(sources: Sequence[str], limit: int = 10) -> list[str]:
        with store.read() as tx:
            return [event.id for event in tx.events.held(sources, limit)]

    assert held([SOURCE]) == ["b", "a"]
    assert held([SOURCE, "other"], limit=1) == ["b"]
    assert held([]) == []
    seqs = [answer[SOURCE, one][0] for one in ("a", "free")]
    for expected in ({seqs[0]}, set()):
        with store.begin() as tx:
            assert tx.events.release(seqs) == expected
    assert held([SOURCE]) == ["b"]


def _reject(number: int, **changes: Any) -> Reject:
    fields: dict[str, Any] = {
        "seq": 0,
        "source": SOURCE,
        "at": T0 + number * SECOND,
        "reason": Refusal.SIGNATURE_MISMATCH,
        "why": f"number {number}",
        "headers": (("x-signature", "ÿ"),),
        "body": b"\x00\xff",
        "query": "a=1",
    }
    return Reject(**{**fields, **changes})


def test_the_newest_refused_requests_are_kept(store: SqlStore) -> None:
    with store.begin() as tx:
        tx.events.reject([_reject(0, source="other"), *(_reject(number) for number in range(4))], 3, 100)
        tx.events.reject([_reject(4), _reject(5)], 3, 100)
    with store.read() as tx:
        kept = tx.events.rejects(SOURCE, 10)
        assert [one.why for one in tx.events.rejects(SOURCE, 2)] == ["number 3", "number 4"]
        assert [one.why for one in tx.events.rejects(SOURCE, 2, kept[1].seq)] == ["number 5"]
        assert [one.why for one in tx.events.rejects(SOURCE, 2, since=kept[1].at)] == ["number 4", "number 5"]
        assert len(tx.events.rejects("other", 10)) == 1
    told = zip((3, 4, 5), kept, (3, 0, 0), strict=True)
    assert kept == [replace(_reject(number), seq=one.seq, dropped=gone) for number, one, gone in told]
    with store.queries() as queries:
        found = queries.rejects(SOURCE, 2)
    assert (found.rejects, found.kept, found.dropped) == (tuple(kept[:0:-1]), 3, 3)
    assert found.dropped_before == kept[0].at
    with store.begin() as tx:
        tx.events.accept([kept[1].seq], T0)
    with store.read() as tx:
        assert [one.why for one in tx.events.rejects(SOURCE, 10)] == ["number 3", "number 5"]
    with store.begin() as tx:
        tx.events.reject([_reject(6), _reject(7)], 3, 2)
    with store.queries() as queries:
        left = queries.rejects(SOURCE)
    assert ([one.why for one in left.rejects], left.dropped) == (["number 7"], 6), "one was accepted, and is not missed"


def test_old_events_go_and_those_that_are_needed_stay(store: SqlStore) -> None:
    set_up(store)
    old = T0 - 10 * DAY
    names = ["done", "none", "pending", "running", "dead", "discarded", "held"]
    answer = put(
        store,
        *[told(name, received_at=old, held=name == "held") for name in names],
        told("young", received_at=T0 - DAY),
        told("other", received_at=old, source="other"),
    )
    runs = {
        name: new_run("job", event=answer[SOURCE, name][0], payload=1)
        for name in ("done", "dead", "discarded", "running", "pending")
    }
    add(store, *[run for name, run in runs.items() if name != "pending"])
    ended = {"done": Status.COMPLETED, "dead": Status.FAILED, "discarded": Status.FAILED}
    by_id = {run.id: name for name, run in runs.items()}
    settle(
        store,
        *[settlement(run, ended[by_id[run.id]]) for run in claim(store) if by_id[run.id] in ended],
    )
    add(store, runs["pending"])
    with store.begin() as tx:
        tx.runs.discard([runs["discarded"].id], T0)
        tx.events.listed("scan", [answer[SOURCE, "done"][0]], T0)
        assert tx.events.prune(SOURCE, timedelta(days=5), T0, 2) == 2
        assert tx.events.prune(SOURCE, timedelta(days=5), T0, 100) == 1
        assert tx.events.prune(SOURCE, timedelta(days=5), T0, 100) == 0
    assert known(store, *names, "young") == ["dead", "held", "pending", "running", "young"]
    assert known(store, "other", source="other") == ["other"]
    # its id is forgotten
    assert put(store, told("done"))[SOURCE, "done"][1]


def test_what_is_forgotten_is_known(store: SqlStore) -> None:
    """Refused requests go first: verified again after their event was forgotten it would be handled once more."""

    def forgotten(source: str = SOURCE) -> datetime | None:
        with store.read() as tx:
            return tx.events.forgotten(source)

    def prune(keep: timedelta, limit: int = 100) -> int:
        with store.begin() as tx:
            return tx.events.prune(SOURCE, keep, T0, limit)

    put(store, *[told(f"e{days}", received_at=T0 - days * DAY) for days in range(6)], told("o", source="other"))
    with store.begin() as tx:
        tx.events.reject([_reject(0, at=T0 - days * DAY) for days in (5, 4, 1)], 10, 100)
    assert prune(10 * DAY) == 0
    assert forgotten() is None
    assert prune(3 * DAY, limit=1) == 1
    assert forgotten() is None, "that was a refused request"
    assert prune(3 * DAY, limit=2) == 2
    assert forgotten() == T0 - 5 * DAY
    assert prune(3 * DAY) == 1
    assert forgotten() == T0 - 4 * DAY
    with store.read() as tx:
        assert [one.at for one in tx.events.rejects(SOURCE, 10)] == [T0 - DAY]
    assert prune(2 * DAY) == 1
    put(store, told("e5", received_at=T0 - 5 * DAY))
    assert prune(2 * DAY) == 1
    assert forgotten() == T0 - 3 * DAY, "it never goes back"
    assert forgotten("other") is None
