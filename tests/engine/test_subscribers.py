"""Which jobs an event concerns, and what their runs carry."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.event import NewEvent, Via
from scheduler.core.job import Action, Job
from scheduler.core.model import Cause
from scheduler.core.source import OnEvent, Order
from scheduler.engine.subscribers import DEEPEST, Subscriber, Told, by_source, concerns, event_run, replayed_run, told
from tests.engine.doubles import START


def job(name: str = "ticket", *, enabled: bool = True, lock: str | None = None, **on_event: Any) -> Job:
    how = OnEvent("payments", **on_event)
    return Job(name, "{}", "", Action("command", {}), enabled=enabled, on_event=how, lock=lock)


def subscriber(**on_event: Any) -> Subscriber:
    (found,) = by_source([job(**on_event)])["payments"]
    return found


def event(body: Any = None, **how: Any) -> NewEvent:
    raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    given = {"id": "e1", "via": Via.WEBHOOK, "received_at": START, "type": "payment.failed", **how}
    return NewEvent("payments", body=raw, **given)


def of(body: Any = None, **how: Any) -> Told:
    return told(event(body, **how), 7)


def test_jobs_are_known_by_the_source_that_concerns_them() -> None:
    other = replace(job("other"), on_event=OnEvent("elsewhere"))
    none = replace(job("none"), on_event=None)
    found = by_source([job("b"), other, none, job("off", enabled=False), job("a")])
    assert {source: [one.job.name for one in some] for source, some in found.items()} == {
        "payments": ["b", "a"],
        "elsewhere": ["other"],
    }


@pytest.mark.parametrize(
    ("types", "type_", "matches"),
    [
        ((), "payment.failed", True),
        ((), "", True),
        (("payment.*",), "payment.failed", True),
        (("refund.*", "payment.failed"), "payment.failed", True),
        (("refund.*",), "payment.failed", False),
        (("payment.*",), "", False),
    ],
)
def test_types_are_globs(types: tuple[str, ...], type_: str, matches: bool) -> None:
    assert concerns(subscriber(types=types), of(type=type_)) == (matches, "")


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ("event_type == 'exception'", True),
        ("event_type == 'fine'", False),
        ("missing", False),
        ("empty_text", False),
        ("empty_list", False),
        ("empty_object", False),
        ("no", False),
        ("zero", True),
        ("lines[?sum > `10`]", True),
        ("lines[?sum > `100`]", False),
    ],
)
def test_a_condition_is_true_as_jmespath_means_it(where: str, matches: bool) -> None:
    body = {
        "event_type": "exception",
        "empty_text": "",
        "empty_list": [],
        "empty_object": {},
        "no": False,
        "zero": 0,
        "lines": [{"sum": 11}],
    }
    assert concerns(subscriber(where=where), of(body)) == (matches, "")


def test_a_condition_that_raises_counts_as_a_match_and_is_told() -> None:
    matches, why = concerns(subscriber(where="length(total)"), of({"total": 3}))
    assert matches
    assert "length(total) cannot be evaluated" in why


def test_a_condition_that_raises_says_nothing_about_another_type() -> None:
    assert concerns(subscriber(types=("refund.*",), where="length(total)"), of({"total": 3})) == (False, "")


def test_the_payload_says_what_came_and_how() -> None:
    came = of({"n": 1.10}, occurred_at=START - timedelta(hours=1), subject="order-1", via=Via.SCAN)
    run = event_run(subscriber(), replace(came, late=True), START)
    assert (run.job, run.cause, run.key, run.event) == ("ticket", Cause.EVENT, "event:payments:e1", 7)
    assert run.has_payload
    assert run.payload == {
        "schema": 1,
        "event": {
            "id": "e1",
            "source": "payments",
            "type": "payment.failed",
            "occurred_at": "2026-03-02T07:00:00Z",
            "subject": "order-1",
            "via": "scan",
            "late": True,
        },
        "data": {"n": 1.10},
        "current": None,
    }


def test_a_replay_is_a_run_of_its_own() -> None:
    one, other = (replayed_run(subscriber(), of(), START, "me", "again") for _ in range(2))
    assert one.key == one.id != other.key
    assert (one.cause, one.author, one.note, one.payload["event"]["via"]) == (Cause.REPLAY, "me", "again", "replay")


@pytest.mark.parametrize(
    ("body", "content_type", "data"),
    [
        (b'{"a": 1}', "application/json", {"a": 1}),
        (b"a=1&b=2&b=3", "application/x-www-form-urlencoded", {"a": "1", "b": ["2", "3"]}),
        (b"hello", "text/plain", "hello"),
        (b"\xff\x00", "", "\N{REPLACEMENT CHARACTER}\x00"),
        (b'{"a": NaN}', "application/json", '{"a": NaN}'),
        (b"", "", ""),
    ],
)
def test_whatever_the_body_is_it_is_handed_on(body: bytes, content_type: str, data: Any) -> None:
    assert of(body, content_type=content_type).data == data


def test_a_body_that_is_nested_without_measure_is_handed_on_as_a_text() -> None:
    fits = b"[" * DEEPEST + b"]" * DEEPEST
    assert isinstance(of(fits).data, list)
    assert of(b"[" + fits + b"]").data == "[" + fits.decode() + "]"
    wide = b"[" + b"[]," * DEEPEST + b"[]]"
    assert len(of(wide).data) == DEEPEST + 1


def test_in_the_order_of_subjects_each_has_a_line_of_its_own() -> None:
    ordered = subscriber(order=Order.SUBJECT)
    first = event_run(ordered, of(subject="a", occurred_at=START), START)
    second = event_run(ordered, of(subject="a", occurred_at=START + timedelta(microseconds=1)), START)
    other = event_run(ordered, of(subject="b", occurred_at=START), START)
    assert first.lock == second.lock == "event:ticket:a"
    assert other.lock == "event:ticket:b"
    assert first.rank is not None
    assert second.rank == first.rank + 1


def test_an_event_without_a_time_stands_where_it_came() -> None:
    ordered = subscriber(order=Order.SUBJECT)
    timed = event_run(ordered, of(subject="a", occurred_at=START), START)
    untimed = event_run(ordered, of(subject="a", received_at=START + timedelta(seconds=1)), START)
    assert timed.rank is not None
    assert untimed.rank == timed.rank + 1_000_000


def test_without_a_subject_there_is_nothing_to_order() -> None:
    found = by_source([job(order=Order.SUBJECT, lock="job:ticket")])["payments"][0]
    run = event_run(found, of(), START)
    assert (run.lock, run.rank) == ("job:ticket", None)
