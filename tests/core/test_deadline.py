"""By when a job must have succeeded: the corners, and everything against a walk from instant to instant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.deadline import deadline
from scheduler.core.job import Blackout, Job, Watch
from scheduler.core.model import Pause

from .builders import TICK, at, fixed, job, pause, recurring
from .judge import Excuses, instants_of
from .situations import blackouts_near, pauses_near, places, stretches
from .strategies import CORE

GRACE = timedelta(minutes=10)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def watched(text: str | None = "0 * * * *", zone: str = "UTC", blackouts: Iterable[Blackout] = ()) -> Job:
    return job(text, zone, blackouts=tuple(blackouts), watch=Watch(grace=GRACE))


SETTLED = at("2026-03-01 10:00")


def expected(
    tested: Job,
    pauses: Iterable[Pause] = (),
    excused: Iterable[tuple[datetime, datetime]] = (),
    settled: datetime = SETTLED,
) -> datetime | None:
    """The instant whose deadline counts."""
    found = deadline(tested, settled, pauses, excused)
    return None if found is None else found - GRACE


# ------------------------------------------------------------------------------------------------ against a walk


@settings(CORE, max_examples=80)
@given(st.data())
def test_it_is_the_first_instant_without_an_excuse(data: st.DataObject) -> None:
    tested, start, end, instants = data.draw(places())
    assert tested.schedule is not None
    pauses = data.draw(pauses_near(instants))
    blackouts = data.draw(blackouts_near(instants, tested.schedule.zone))
    ranges = [tuple(pair) for pair in data.draw(st.lists(stretches(instants), max_size=3))]
    settled = data.draw(st.sampled_from([start, start - TICK, *instants[:3]]))
    tested = replace(tested, blackouts=tuple(blackouts), watch=Watch(grace=GRACE))
    excuses = Excuses(pauses, blackouts, start, end)

    right = next(
        (
            instant
            for instant in instants_of(tested, settled + TICK, end)
            if not excuses.of(instant) and not any(first <= instant <= last for first, last in ranges)
        ),
        None,
    )
    found = expected(tested, pauses, ranges, settled)

    if right is not None:
        assert found == right
    else:
        assert found is None or found > end


# ------------------------------------------------------------------------------------------------ nothing expected


@pytest.mark.parametrize(
    "tested",
    [
        watched(None),
        replace(watched(), enabled=False),
        replace(watched(), watch=Watch(heartbeat=False)),
    ],
    ids=["no schedule", "disabled", "no heartbeat"],
)
def test_nothing_is_expected_of(tested: Job) -> None:
    assert deadline(tested, SETTLED, []) is None


def test_the_next_instant_after_the_success_is_expected() -> None:
    assert expected(watched()) == at("2026-03-01 11:00")
    assert expected(watched(), settled=SETTLED - TICK) == SETTLED


def test_weekly() -> None:
    weekly = watched("0 9 * * MON", "Europe/Paris")

    assert expected(weekly, settled=at("2026-10-19 09:00+02:00")) == at(
        "2026-10-26 09:00+01:00"
    )  # seven days, one hour


@pytest.mark.parametrize(
    ("text", "settled", "right"),
    [
        ("15 2 * * *", "2026-03-07 02:15-05:00", "2026-03-08 07:00"),
        ("15 1 * * *", "2026-10-31 01:15-04:00", "2026-11-01 05:15"),
        ("15 1 * * *", "2026-11-01 01:15-04:00", "2026-11-02 06:15"),
        ("*/30 * * * *", "2026-11-01 01:30-04:00", "2026-11-01 06:00"),
    ],
)
def test_nights_when_the_clock_changes(text: str, settled: str, right: str) -> None:
    assert expected(watched(text, "America/New_York"), settled=at(settled)) == at(right)


# ------------------------------------------------------------------------------------------------ pauses


def test_a_pause_without_end_silences() -> None:
    assert expected(watched(), [pause(at("2026-03-01 10:30"), None)]) is None


def test_a_pause_with_an_end_puts_off() -> None:
    until = at("2026-03-01 14:00")

    assert expected(watched(), [pause(at("2026-03-01 11:00"), until)]) == until  # its end is not part of it
    assert expected(watched(), [pause(at("2026-03-01 11:00"), until + TICK)]) == at("2026-03-01 15:00")


@pytest.mark.parametrize("until", [None, at("2026-03-05")])
def test_an_excuse_does_not_settle_what_was_missed_before_it(until: datetime | None) -> None:
    assert expected(watched(), [pause(at("2026-03-01 11:00:00.000001"), until)]) == at("2026-03-01 11:00")
    assert expected(watched(), [], [(at("2026-03-01 12:00"), at("2026-03-05"))]) == at("2026-03-01 11:00")


def test_pauses_one_after_the_other() -> None:
    pauses = [
        pause(at("2026-03-01 13:00"), at("2026-03-01 15:00")),
        pause(at("2026-03-01 10:30"), at("2026-03-01 13:00")),
        pause(at("2026-03-01 10:45"), at("2026-03-01 11:15")),
        pause(at("2026-02-01"), at("2026-02-02")),
    ]

    assert expected(watched(), pauses) == at("2026-03-01 15:00")


def test_the_order_of_excuses_does_not_matter() -> None:
    pauses = [pause(at("2026-03-01 10:30"), at("2026-03-01 20:30")), pause(at("2026-03-01 11:00"), None)]

    assert expected(watched(), pauses) is None
    assert expected(watched(), pauses[::-1]) is None


# ------------------------------------------------------------------------------------------------ blackouts


def test_blackouts_of_both_shapes() -> None:
    once = fixed(at("2026-03-01 11:00"), at("2026-03-01 13:00"))
    nightly = recurring("0 12 * * *", 4 * HOUR)

    assert expected(watched(blackouts=[once])) == at("2026-03-01 13:00")
    assert expected(watched(blackouts=[nightly])) == at("2026-03-01 11:00")
    assert expected(watched(blackouts=[once, nightly])) == at("2026-03-01 16:00")


def test_a_recurring_blackout_that_has_begun_before_the_success() -> None:
    assert expected(watched(blackouts=[recurring("30 9 * * *", 5 * HOUR)])) == at("2026-03-01 15:00")


def test_a_blackout_that_covers_one_instant_each_day() -> None:
    daily = watched("0 3 * * *", blackouts=[recurring("0 2 * * MON-SAT", 2 * HOUR)])

    assert expected(daily) == at("2026-03-08 03:00")  # the next Sunday


@pytest.mark.parametrize(
    ("text", "begin", "length"),
    [
        ("0 3 * * *", "0 2 * * *", 2 * HOUR),
        ("0 3 * * *", "* * * * *", MINUTE),
        ("* * * * *", "0 * * * *", HOUR),
        ("* * * * *", "* * * * *", MINUTE),
        ("* * * * *", "* * * * *", TICK),
        ("0 9 1 1 *", "0 0 1 1 *", DAY),
        ("0 9 1 1 *", "0 0 1 * *", 31 * DAY),
        ("*/10 * * * * *", "* * * * * *", timedelta(seconds=1)),
    ],
)
def test_a_job_that_never_leaves_its_blackouts_is_not_expected(text: str, begin: str, length: timedelta) -> None:
    assert expected(watched(text, blackouts=[recurring(begin, length)])) is None


def test_a_season_is_not_taken_for_ever() -> None:
    summer = watched("*/5 * * * *", blackouts=[recurring("*/5 * * 3-9 *", 5 * MINUTE)])
    minutes = watched("*/7 * * * *", blackouts=[recurring("* * * 3-9 *", MINUTE)])
    hourly = watched("0 * * * *", blackouts=[recurring("0 * * 3-6 *", MINUTE)])
    new_year = watched("0 9 1 1 *", blackouts=[recurring("0 0 * * 1-5", DAY)])

    assert expected(summer) == at("2026-10-01")
    assert expected(minutes) == at("2026-10-01")
    assert expected(hourly) == at("2026-07-01")
    assert expected(new_year) == at("2028-01-01 09:00")  # the first one on a weekend


# ------------------------------------------------------------------------------------------------ overlap, ack


def test_acknowledged_misses() -> None:
    known = [(at("2026-03-01 11:00"), at("2026-03-01 13:00"))]

    assert expected(watched(), [], known) == at("2026-03-01 14:00")  # closed at both ends


def test_a_run_that_hangs_does_not_excuse_itself_for_ever() -> None:
    """The run of 11:00 hangs; overlap excuses what falls into its first ten minutes, its own instant nothing does."""
    every_minute = watched("* * * * *")
    hung = at("2026-03-01 11:00")
    young = [(hung + MINUTE, hung + GRACE - TICK)]

    assert expected(every_minute, [], young, settled=hung - MINUTE) == hung
    assert expected(every_minute, [], young, settled=hung) == hung + GRACE  # its own was settled by somebody else


def test_many_excuses_one_after_the_other() -> None:
    minutes = [SETTLED + n * MINUTE for n in range(1, 20_001)]

    assert expected(watched("* * * * *"), [], [(one, one) for one in minutes]) == minutes[-1] + MINUTE
