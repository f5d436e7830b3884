"""Schedules against brute force, against cronsim, and against themselves."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduler.core.errors import InvalidInput, ScheduleError
from scheduler.core.schedule import DayMatch, Schedule

from . import brute_force
from .strategies import CORE, day_matches, five_fields, near_a_change, outcome, six_fields, whole_seconds


def schedule(expressions: list[str], zone: str, day_match: DayMatch = "cron") -> Schedule:
    made = outcome(Schedule, tuple(expressions), zone, day_match)
    if isinstance(made, InvalidInput):  # the only reason why a drawn text may be refused
        assert "never come together" in made.reason
    assume(isinstance(made, Schedule))
    return made


@CORE
@given(st.lists(five_fields, min_size=1, max_size=3), near_a_change(), day_matches)
def test_five_fields_agree_with_brute_force(texts, place, day_match):
    zone, start = place
    end = start + timedelta(hours=30)
    tested = schedule(texts, zone, day_match)

    expected = brute_force.occurrences(texts, zone, start, end, day_match)

    assert list(tested.between(start, end)) == expected
    assert tested.count(start, end) == len(expected)


@CORE
@given(five_fields, near_a_change(1973, 2090))
def test_five_fields_agree_with_brute_force_in_history_and_future(text, place):
    zone, start = place
    end = start + timedelta(hours=28)

    assert list(schedule([text], zone).between(start, end)) == brute_force.occurrences([text], zone, start, end)


@CORE
@given(six_fields, near_a_change(), day_matches)
def test_six_fields_agree_with_brute_force(text, place, day_match):
    zone, start = place
    end = start + timedelta(hours=2)

    expected = brute_force.occurrences([text], zone, start, end, day_match)

    assert list(schedule([text], zone, day_match).between(start, end)) == expected


@CORE
@given(st.lists(st.one_of(five_fields, six_fields), min_size=1, max_size=3), near_a_change(), st.data())
def test_the_methods_agree_with_each_other(texts, place, data):
    zone, start = place
    tested = schedule(texts, zone, data.draw(day_matches))
    end = start + timedelta(minutes=data.draw(st.integers(0, 600)), microseconds=data.draw(st.integers(0, 2)))
    everything = list(tested.between(start, end))
    n = data.draw(st.integers(0, 5))

    assert everything == sorted(set(everything))
    assert tested.count(start, end) == len(everything)
    assert tested.newest(start, end, n) == everything[len(everything) - min(n, len(everything)) :]
    assert tested.newest(start, end, len(everything) + 1) == everything
    walked, moment = [], start - timedelta(microseconds=1)
    for _ in range(min(len(everything), 50)):
        moment = tested.after(moment)
        walked.append(moment)
    assert walked == everything[:50]
    for moment in everything[:10]:
        following = tested.after(moment)
        assert following is None or (following > moment and tested.before(following) == moment)
        assert tested.after(moment - timedelta(microseconds=1)) == moment
        assert tested.before(moment + timedelta(microseconds=1)) == moment


@CORE
@given(five_fields, near_a_change(), st.timedeltas(timedelta(0), timedelta(days=400)))
def test_after_and_before_find_the_ends_of_a_range(text, place, length):
    zone, start = place
    tested = schedule([text], zone)
    end = start + length
    tick = timedelta(microseconds=1)
    first, last = tested.after(start - tick), tested.before(end + tick)
    head, tail = next(tested.between(start, end), None), tested.newest(start, end, 1)

    assert (first if first is not None and first <= end else None) == head
    assert ([last] if last is not None and last >= start else []) == tail
    assert tested.count(start, end) == sum(1 for _ in tested.between(start, end))


@CORE
@given(whole_seconds, st.sampled_from(["UTC", "America/New_York", "Europe/Berlin"]), st.integers(0, 2**32))
def test_agrees_with_cronsim_where_that_is_right(start, zone, seed):
    dice = random.Random(seed)
    hours = str(dice.randint(4, 20))  # away from the folds, where cronsim can answer with the past
    text = " ".join(
        [
            dice.choice(["0", "*/15", "7", "1-59/9"]),
            dice.choice([hours, f"{hours},21", "4-20/3"]),
            dice.choice(["*", "1,15", "*/3", "L", "31"]),
            dice.choice(["*", "2", "JAN-JUN", "*/4", "3,12"]),
            dice.choice(["*", "1", "MON-FRI", "6,7", "5#2", "0L", "*/2"]),
        ]
    )
    tested = schedule([text], zone)
    local = start.astimezone(brute_force.zone(zone))
    local = local.replace(hour=3, minute=30, fold=0) + timedelta(days=1)
    expected = [moment.astimezone(UTC) for moment, _ in zip(CronSim(text, local), range(8), strict=False)]

    found, moment = [], local
    for _ in expected:
        moment = tested.after(moment)
        found.append(moment)

    assert found == expected


@CORE
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    for expression in (text, f"{text} * * * *", f"0 0 {text} * *", f"* * * * {text}"):
        assert outcome(Schedule, (expression,), "UTC")
    assert outcome(Schedule, ("* * * * *",), text)


@CORE
@given(st.lists(st.text(alphabet="0123456789*/-,LW#?HR()~SUNMONFRIJANfeb", min_size=1, max_size=9), max_size=7))
def test_any_signs_of_cron_are_read_or_refused(fields):
    made = outcome(Schedule, (" ".join(fields),), "Europe/Berlin", "cron", "a job")

    if isinstance(made, Schedule):
        following = made.after(datetime(2026, 3, 1, tzinfo=UTC))
        assert following is None or following.tzinfo is UTC
        assert made.before(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize("day_match", ["cron", "or", "and"])
def test_a_whole_year_of_days_agrees_with_brute_force(day_match):
    first, last = datetime(2027, 12, 1, tzinfo=UTC), datetime(2028, 12, 31, tzinfo=UTC)
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    for day in ["*", "?", "L", "*/2", "13", "1-31", "*,10", "28-3/2", "29,L", "5"]:
        for month in ["*", "2", "NOV-FEB/3", "*/5"]:
            for weekday in ["*", "?", "5", "FRI-MON", "5#5", "1L,2#1", "*/7", "0-7/7", "0-6"]:
                text = f"0 0 {day} {month} {weekday}"
                expression = brute_force.Expression(text, day_match)
                expected = [moment for moment in days if expression.matches(moment.replace(tzinfo=None))]
                try:
                    tested = Schedule((text,), "UTC", day_match)
                except ScheduleError:
                    assert not expected, text
                else:
                    assert list(tested.between(first, last)) == expected, text
