"""Every published case: what the libraries got wrong, with the right answer.

Where the product decided otherwise than the case's first answer the decision is in DECIDED, with its reason.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler.core.errors import ScheduleError
from scheduler.core.explain import warnings
from scheduler.core.schedule import Schedule
from scheduler.core.zone import TZDATA_VERSION

CASES = {
    case["id"]: case
    for line in (Path(__file__).parent.parent / "cases" / "schedule.jsonl").read_text("utf-8").splitlines()
    for case in [json.loads(line)]
}

DECIDED = {
    "A38": "W is refused",
    "A40": "W is refused",
    "A49": "six fields mean seconds first; the paste gets a warning",
    "A59": "H is refused without a name, stable with one",
    "B20": "tzdata 2026f leaves Cuba on summer time in the winter of 2026; the fold of 2025 serves instead",
    "B55": "abbreviations are refused, also those that the database knows",
    "B64": "needs a process without tzdata: test_zone.py",
    "B65": "a list of zones: below",
    "B67": "about tables: here only that every instant comes out in UTC",
    "B68": "about freezegun: no clock is read here, test_schedule_independence.py",
}

NEXT = [name for name, case in CASES.items() if "next" in case["right"] and name not in DECIDED]
REJECT = [
    (name, expression)
    for name, case in CASES.items()
    if "reject" in case["right"] and name not in DECIDED
    for expression in case["input"].get("expressions", [case["input"].get("expression")])
]


def test_no_case_is_left_out():
    assert len(CASES) == 90
    assert set(CASES) == {*NEXT, *(name for name, _ in REJECT), *DECIDED}


@pytest.mark.parametrize("name", NEXT)
def test_next(name):
    case = CASES[name]
    tested = Schedule((case["input"]["expression"],), case["input"]["zone"])
    start = datetime.fromisoformat(case["input"]["start"])
    expected = [datetime.fromisoformat(text) for text in case["right"]["next"]]

    found, moment = [], start
    for _ in expected:
        moment = tested.after(moment)
        found.append(moment)

    assert found == expected
    assert list(tested.between(start + timedelta(microseconds=1), expected[-1])) == expected


@pytest.mark.timeout(20)  # Nobody searches the years for what cannot come.
@pytest.mark.parametrize(("name", "expression"), REJECT)
def test_reject(name, expression):
    with pytest.raises(ScheduleError) as refusal:
        Schedule((expression,), "UTC")

    assert refusal.value.hint


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 0 30 2 *", ["30", "2", "day of month", "month"]),
        ("@reboot", ["not supported"]),
        ("@every 5m", ["`*/5 * * * *`"]),
        ("every 5 minutes", ["`*/5 * * * *`"]),
        ("15 sec", ["`*/15 * * * * *`"]),
        ("1m", ["`* * * * *`"]),
        ("every hour", ["`0 * * * *`"]),
        ("every 120 min", ["`0 */2 * * *`"]),
        ("24h", ["`0 0 * * *`"]),
        ("every day", ["`0 0 * * *`"]),
        ("every 7m", ["divides", "*/15"]),
        ("every 0s", ["divides"]),
        ("every 2 days", ["divides"]),
        ("@every 1h30m", ["*/5"]),
        ("0 8 * * 1 # every monday", ["comment"]),
        ("60 8 * * *", ["minute", "0 to 59"]),
        ("0 8 * * 8", ["day of week"]),
        ("0 8 1 13 *", ["month"]),
        ("0 0 * * L", ["5L"]),
        ("0 0 * * L5", ["5L"]),
        ("R * * * *", ["H"]),
        ("0~59 * * * *", ["H"]),
        ("0 0 L-3 * *", ["L"]),
        ("0 0 1 1 * 2030 *", ["year"]),
        ("0 8 * * 1/2", ["1-6/2"]),
        ("0 8 * * Monday", ["MON"]),
        ("0 8 * *", ["4 fields"]),
        ("0 8 * * 5#6", ["#1 to #5"]),
        ("0 8\u00a0* * 1", ["blank"]),
        ("0 8 * * 1\n0 9 * * 2", ["list"]),
        ("0 0 1 * 5#2 extra words here", ["8 fields"]),
        ("0,1,2,3,4,5,6,7,8,9," * 13 + "0 * * * *", ["256"]),
    ],
)
def test_the_refusal_names_the_remedy(expression, words):
    with pytest.raises(ScheduleError) as refusal:
        Schedule((expression,), "UTC")

    assert all(word in str(refusal.value) for word in words)


@pytest.mark.parametrize("zone", CASES["B65"]["input"]["zones"])
def test_zones_that_are_none(zone):
    with pytest.raises(ScheduleError) as refusal:
        Schedule(("* * * * *",), zone)

    assert refusal.value.hint


@pytest.mark.parametrize("name", ["A38", "A40"])
def test_nearest_working_days_are_refused_with_a_hint(name):
    with pytest.raises(ScheduleError, match="nearest working day") as refusal:
        Schedule((CASES[name]["input"]["expression"],), "UTC")

    assert "MON-FRI" in refusal.value.hint


def test_one_star_too_many_is_six_fields_with_a_warning():
    tested = Schedule((CASES["A49"]["input"]["expression"],), "America/Detroit")
    now = datetime(2026, 3, 1, 5, tzinfo=UTC)

    assert tested.after(now) == datetime(2026, 3, 1, 5, 14, tzinfo=UTC)
    assert 'if it should run at 14:00, write "00 14 * * *"' in warnings(tested, now)[0]


def test_a_hash_needs_a_name_and_is_stable():
    with pytest.raises(ScheduleError, match="name of a job"):
        Schedule(("H H * * *",), "UTC")
    start = datetime(2026, 3, 1, tzinfo=UTC)

    first, second = (Schedule(("H H * * *",), "UTC", hash_name=name).after(start) for name in ("a", "b"))

    assert (first, second) == (
        datetime(2026, 3, 1, 8, 24, tzinfo=UTC),
        datetime(2026, 3, 1, 3, 9, tzinfo=UTC),
    )


def test_a_fold_at_midnight_in_havana():
    tested = Schedule(("0 0 * * *",), "America/Havana")
    found = list(tested.between(datetime(2025, 11, 1, 12, tzinfo=UTC), datetime(2025, 11, 3, 12, tzinfo=UTC)))

    assert found == [datetime(2025, 11, 2, 4, tzinfo=UTC), datetime(2025, 11, 3, 5, tzinfo=UTC)]
    assert TZDATA_VERSION >= "2025"


def test_est_is_refused_with_both_readings():
    with pytest.raises(ScheduleError) as refusal:
        Schedule(("0 9 * * *",), "EST")

    assert "America/New_York" in refusal.value.hint
    assert "America/Panama" in refusal.value.hint


def test_every_instant_comes_out_in_utc():
    tested = Schedule(("30 1 * * *",), "America/New_York")

    assert tested.after(datetime.fromisoformat("2026-11-01T01:00:00-04:00")).tzinfo is UTC
