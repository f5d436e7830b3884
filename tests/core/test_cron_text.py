"""Every number, range and step of every field against the reader of the brute-force implementation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.cron_text import ALIASES, COLUMNS, read
from scheduler.core.errors import ScheduleError
from scheduler.core.schedule import Schedule

from . import brute_force

KINDS = list(brute_force.RANGES)
DENSE = {"second": 11, "minute": 11, "hour": 3, "day": 4, "month": 1, "weekday": 1}


def items(kind: str) -> list[str]:
    low, high = brute_force.RANGES[kind]
    ends = sorted({*range(low, high + 1, DENSE[kind]), low, high})
    found = [str(number) for number in range(low, high + 1)]
    found += [f"*/{step}" for step in range(1, high + 3)]
    found += [f"{a}-{b}{step}" for a in ends for b in ends for step in ("", "/2", "/3", "/5", "/59", "/99999")]
    if kind != "weekday":
        found += [f"{a}/{step}" for a in ends for step in (1, 7, high + 1)]
    return found


def columns(kind: str, item: str) -> str:
    texts = ["0", "0", "0", "*", "*", "*"]
    texts[KINDS.index(kind)] = item
    return " ".join(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_range_and_step(kind):
    for item in items(kind):
        rule = Schedule((columns(kind, item),), "UTC", "and").timetable.rules[0]
        numbers = [rule.seconds, rule.minutes, rule.hours, rule.days, rule.months, rule.weekdays]

        assert set(numbers[KINDS.index(kind)]) == brute_force.field(item, kind), item


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_out_of_range_are_refused_with_the_name_of_the_field(kind):
    low, high = brute_force.RANGES[kind]
    for item in (str(high + 1), f"{low}-{high + 1}", str(low - 1), "*/0", "", "5x", "9" * 50, f"{low}-", "a,b"):
        if not item:
            continue
        with pytest.raises(ScheduleError) as refusal:
            read(columns(kind, item))

        assert refusal.value.reason.startswith(COLUMNS[KINDS.index(kind)].name)


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("spell", [str, str.upper, lambda text: f" {text}\t\n"])
def test_aliases_are_what_they_stand_for(alias, spell):
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    written, meant = (Schedule((text,), "UTC") for text in (spell(alias), ALIASES[alias]))

    assert written.after(start) == meant.after(start)
    assert list(written.between(start, start + timedelta(days=40))) == list(
        meant.between(start, start + timedelta(days=40))
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 29-L * *", "as 15,L"),
        ("0 0 L-3 * *", "days before the last"),
        ("0 0 L-3/2 * *", "as 15,L"),
        ("0 0 15W * *", "nearest working day"),
        ("0 0 W * *", "nearest working day"),
        ("0 0 5L * *", "day-of-week"),
        ("L * * * *", "day-of-month"),
        ("H(20-10) * * * *", "runs backwards"),
        ("H(50-70) * * * *", "out of range"),
        ("H-5 * * * *", "H/15"),
        ("0 0 ?/2 * *", "`*`"),
        ("0 0 * ? *", "day fields only"),
        ("@daily 5", "alone"),
        ("5 @daily * * *", "alone"),
        ("@noon", "@daily"),
        ("0 8 * * MON#1-FRI#2", "alone"),
        ("0 8 * * 1-5#2", "alone"),
        ("0 8 * * 1#0", "#1 to #5"),
    ],
)
def test_what_other_dialects_write_gets_a_hint(text, words):
    with pytest.raises(ScheduleError) as refusal:
        read(text, "a job")

    assert words in str(refusal.value)
