"""on_event: which events start a job, and keys that then mean nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.core.job import CatchUp, Job, Overlap
from scheduler.core.source import OnDead, OnEvent, Order
from tests.config.texts import load, problems

HEAD = """\
sources:
  pay: {preset: stripe, secrets: {env: S}}
  flat: {signature: {scheme: hmac, header: X}, secrets: {env: S}, event: {id: id}}
  broken: {preset: nobody}
"""
GOOD = HEAD.replace("  broken: {preset: nobody}\n", "")


def job(keys: str, defaults: str = "") -> Job:
    return load(f"{GOOD}defaults: {{{defaults}}}\njobs: {{a: {{command: x, {keys}}}}}").jobs["a"]


def test_a_text_is_the_name_of_the_source() -> None:
    made = job("on_event: pay")
    assert made.on_event == OnEvent("pay")
    assert made == job("on_event: {source: pay, order: none, on_dead: go_on}")
    assert made.definition["on_event"] == {"source": "pay"}
    assert (made.overlap, made.lock, made.queue) == (Overlap.ALLOW, None, "default")
    assert len(made.payload_retries.waits) == 4


def test_all_of_it() -> None:
    keys = "types: ['invoice.*', 'charge.failed'], where: \"data.amount > `5`\", order: subject, on_dead: hold"
    made = job(f"on_event: {{source: pay, {keys}}}").on_event
    assert made == OnEvent("pay", ("invoice.*", "charge.failed"), "data.amount > `5`", Order.SUBJECT, OnDead.HOLD)
    made = job("on_event: {source: pay, types: invoice.paid}").on_event
    assert made is not None
    assert made.types == ("invoice.paid",)


def test_any_type_where_the_source_says_none() -> None:
    made = job("on_event: {source: flat, types: '*'}").on_event
    assert made is not None
    assert made.types == ("*",)


def test_a_schedule_beside_it() -> None:
    """Then there are occurrences to which policies apply, and one lock for all runs."""
    made = job("on_event: pay, schedule: '@daily', timezone: UTC, catch_up: all")
    assert (made.overlap, made.lock, made.catch_up) == (Overlap.SKIP, "job:a", CatchUp.ALL)


def test_one_at_a_time_if_that_is_wanted() -> None:
    assert job("on_event: pay, overlap: queue").lock == "job:a"
    assert job("on_event: pay, lock: l").lock == "lock:l"


@pytest.mark.parametrize("defaults", ["overlap: skip", "overlap: queue", "overlap: replace"])
def test_the_subject_is_the_lock_whatever_is_inherited(defaults: str) -> None:
    made = job("on_event: {source: pay, order: subject}", defaults)
    assert (made.overlap, made.lock) == (Overlap.ALLOW, None)


def test_what_is_inherited_and_means_nothing_is_passed_over() -> None:
    made = job("on_event: pay", "catch_up: all, catch_up_window: 1h, day_match: and, overlap: skip")
    assert made.overlap is Overlap.QUEUE
    assert made.catch_up_window == timedelta(hours=1)


BROKEN = [
    ("on_event: pya", "there is no source `pya`", "did you mean `pay`?"),
    ("on_event: zzzzzz", "there is no source `zzzzzz`", "add zzzzzz below `sources`"),
    ("on_event: {types: x}", "`source` is missing", "add source"),
    ("on_event: {source: pay, type: x}", "unknown key `type`", "did you mean `types`?"),
    ("on_event: [pay]", "a list is not a text", "write a text"),
    ("on_event: {source: pay, types: 5}", "`5` is a number", 'put it in quotes: "5"'),
    ("on_event: {source: pay, types: [a, 1.50]}", "`1.50` is a number", 'put it in quotes: "1.50"'),
    ("on_event: {source: pay, types: []}", "the list of types is empty", "payment.*"),
    ("on_event: {source: pay, types: ['']}", "must not be empty", "write a text"),
    ("on_event: {source: pay, where: 'a ==='}", "is not JMESPath", "data.object.id"),
    ("on_event: {source: pay, where: 'size(a)'}", "there is no function size", "length"),
    ("on_event: {source: pay, where: 'header:X'}", "names a header", "a condition on the body"),
    ("on_event: {source: pay, order: time}", "`time` is not one of the choices", "none or subject"),
    ("on_event: {source: pay, on_dead: stop}", "`stop` is not one of the choices", "go_on or hold"),
    ("on_event: {source: pay, on_dead: hold}", "without `order: subject`", "add order: subject"),
    ("on_event: {source: flat, order: subject}", "does not say what its events are about", "sources.flat"),
    ("on_event: {source: flat, types: [a.b]}", "of which type its events are", "sources.flat, or use `where`"),
    ("on_event: pay, catch_up: latest", "about the occurrences of a schedule", "schedctl pause"),
    ("on_event: pay, catch_up_window: 1d", "about the occurrences of a schedule", "schedctl pause"),
    ("on_event: pay, catch_up_max: 5", "about the occurrences of a schedule", "schedctl pause"),
    ("on_event: pay, day_match: or", "about the occurrences of a schedule", "schedctl pause"),
    (
        "on_event: pay, blackouts: [{from: 2026-01-01, to: 2026-01-02, reason: r}], timezone: UTC",
        "about the occurrences of a schedule",
        "schedctl pause",
    ),
    ("on_event: pay, overlap: skip", "needs a schedule", "write queue"),
    ("on_event: {source: pay, order: subject}, overlap: queue", "cannot be kept with `order: subject`", "one of"),
    ("on_event: {source: pay, order: subject}, lock: l", "cannot be kept with `order: subject`", "one of"),
    ("on_event: {source: pay, order: subject}, schedule: '@daily', timezone: UTC", "has no subject", "two jobs"),
]


@pytest.mark.parametrize(("keys", "reason", "hint"), BROKEN)
def test_is_refused_with_line_reason_and_remedy(keys: str, reason: str, hint: str) -> None:
    (found,) = problems(f"{GOOD}jobs:\n  a:\n    {{command: x, {keys}}}\n")
    assert (found.line, found.job) == (6, "a")
    assert reason in found.reason
    assert hint in (found.hint or "")


def test_a_source_that_is_wrong_is_told_once_and_is_there() -> None:
    (found,) = problems(f"{HEAD}jobs: {{a: {{command: x, on_event: {{source: broken, order: subject}}}}}}\n")
    assert found.path == ("sources", "broken", "preset")


def test_it_is_no_default() -> None:
    (found,) = problems(f"{GOOD}defaults: {{on_event: pay}}\njobs: {{}}\n")
    assert found.reason == "`on_event` belongs to a job, not to `defaults`"
