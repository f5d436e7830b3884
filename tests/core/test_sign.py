"""Which occurrence a run is that began elsewhere: at the changes of the clock, early and late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.deadline import deadline
from scheduler.core.job import EXTERNAL, Action, Job, Watch
from scheduler.core.model import Status
from scheduler.core.schedule import Schedule
from scheduler.core.sign import EARLY, Sign, Word, fate_of, occurrence_of

SECOND = timedelta(seconds=1)


def job(expression: str, zone: str = "UTC", grace: timedelta = timedelta(hours=1)) -> Job:
    return Job("a", "{}", "", Action(EXTERNAL, {}), schedule=Schedule((expression,), zone), watch=Watch(grace=grace))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


NIGHTLY = job("0 2 * * *")
AT_TWO = utc(2026, 3, 3, 2)


@pytest.mark.parametrize(
    ("late", "belongs"),
    [
        (timedelta(), True),
        (timedelta(minutes=59), True),
        (timedelta(hours=1), True),
        (timedelta(hours=1) + SECOND, False),
        (-EARLY, True),
        (-EARLY - SECOND, False),
        (timedelta(hours=12), False),
    ],
)
def test_it_may_begin_within_grace_after_its_instant_and_a_minute_before(late: timedelta, belongs: bool) -> None:
    assert occurrence_of(NIGHTLY, AT_TWO + late) == (AT_TWO if belongs else None)


@pytest.mark.parametrize(
    ("expression", "began", "instant"),
    [
        # A quarter of a minute before the next one is not yet the next one.
        ("* * * * *", utc(2026, 3, 3, 2, 0, 35), utc(2026, 3, 3, 2, 0)),
        ("* * * * *", utc(2026, 3, 3, 2, 0, 44), utc(2026, 3, 3, 2, 0)),
        ("* * * * *", utc(2026, 3, 3, 2, 0, 45), utc(2026, 3, 3, 2, 1)),
        ("*/2 * * * *", utc(2026, 3, 3, 2, 1, 29), utc(2026, 3, 3, 2, 0)),
        ("*/2 * * * *", utc(2026, 3, 3, 2, 1, 30), utc(2026, 3, 3, 2, 2)),
        ("0 * * * *", utc(2026, 3, 3, 2, 59, 0), utc(2026, 3, 3, 3)),
        ("0 * * * *", utc(2026, 3, 3, 2, 58, 59), utc(2026, 3, 3, 2)),
    ],
)
def test_an_early_clock_counts_for_a_part_of_the_time_between_two(
    expression: str, began: datetime, instant: datetime
) -> None:
    assert occurrence_of(job(expression), began) == instant


@pytest.mark.parametrize(
    ("zone", "expression", "began", "instant"),
    [
        # 02:30 is left out; cron on that machine runs it at 03:00, which is 07:00 UTC.
        ("America/New_York", "30 2 * * *", utc(2026, 3, 8, 7, 0, 2), utc(2026, 3, 8, 7)),
        ("America/New_York", "30 2 * * *", utc(2026, 3, 8, 6, 59, 30), utc(2026, 3, 8, 7)),
        # 01:30 comes twice; the first is meant. An hour later it is late by an hour, and not another one.
        ("America/New_York", "30 1 * * *", utc(2026, 11, 1, 5, 30, 1), utc(2026, 11, 1, 5, 30)),
        ("America/New_York", "30 1 * * *", utc(2026, 11, 1, 6, 30), utc(2026, 11, 1, 5, 30)),
        ("America/New_York", "30 1 * * *", utc(2026, 11, 1, 6, 30, 1), None),
        # What comes every half hour comes in both hours.
        ("America/New_York", "*/30 * * * *", utc(2026, 11, 1, 6, 30, 1), utc(2026, 11, 1, 6, 30)),
        ("Europe/Paris", "0 9 * * MON", utc(2026, 10, 26, 8, 0, 5), utc(2026, 10, 26, 8)),
    ],
)
def test_at_the_changes_of_the_clock(zone: str, expression: str, began: datetime, instant: datetime | None) -> None:
    assert occurrence_of(job(expression, zone), began) == instant


@pytest.mark.parametrize("early", [timedelta(), timedelta(seconds=30), EARLY])
def test_an_early_success_settles_its_instant_and_not_the_one_after(early: timedelta) -> None:
    instant = occurrence_of(NIGHTLY, AT_TWO - early)
    assert instant == AT_TWO
    assert deadline(NIGHTLY, instant, ()) == AT_TWO + timedelta(days=1, hours=1)


def test_without_a_schedule_there_is_none() -> None:
    assert occurrence_of(Job("a", "{}", "", Action(EXTERNAL, {})), AT_TWO) is None


@pytest.mark.parametrize(
    ("sign", "status", "outcome", "code"),
    [
        (Sign("a", Word.SUCCESS), Status.COMPLETED, "completed", None),
        (Sign("a", Word.SUCCESS, 0), Status.COMPLETED, "completed", 0),
        (Sign("a", Word.FAIL), Status.FAILED, "error", None),
        (Sign("a", Word.FAIL, 3), Status.FAILED, "exit", 3),
    ],
)
def test_how_it_ended(sign: Sign, status: Status, outcome: str, code: int | None) -> None:
    fate = fate_of(sign)
    assert (fate.status, fate.outcome, fate.exit_code) == (status, outcome, code)
    assert (fate.error is None) is (status is Status.COMPLETED)
