"""Schedules: the rules one by one, the ends of ranges, and what a caller may hand in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scheduler.core.errors import ScheduleError
from scheduler.core.schedule import Schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def following(expressions: str | list[str], zone: str, start: str, count: int, **more: str) -> list[str]:
    texts = [expressions] if isinstance(expressions, str) else expressions
    tested, moment, found = Schedule(tuple(texts), zone, **more), at(start), []
    for _ in range(count):
        moment = tested.after(moment)
        found.append(moment.astimezone(tested.tzinfo).strftime("%Y-%m-%d %H:%M:%S%z"))
    return found


def test_before_the_second_is_not_at_the_second():
    tested = Schedule(("45 8 * * *",), "UTC")
    due = at("2026-03-01T08:45:00Z")

    assert tested.after(due) == due + timedelta(days=1)
    assert tested.after(at("2026-03-01T08:44:59.997Z")) == due
    assert tested.after(at("2026-03-01T08:45:00.000001Z")) == due + timedelta(days=1)
    assert tested.before(due) == due - timedelta(days=1)
    assert tested.before(at("2026-03-01T08:45:00.000001Z")) == due


def test_between_includes_both_ends():
    tested = Schedule(("0 * * * *",), "UTC")

    assert list(tested.between(at("2026-03-01T08:00Z"), at("2026-03-01T09:00Z"))) == [
        at("2026-03-01T08:00Z"),
        at("2026-03-01T09:00Z"),
    ]
    assert list(tested.between(at("2026-03-01T08:00:00.5Z"), at("2026-03-01T08:59:59.999Z"))) == []
    assert list(tested.between(at("2026-03-01T09:00Z"), at("2026-03-01T08:00Z"))) == []
    assert tested.count(at("2026-03-01T09:00Z"), at("2026-03-01T08:00Z")) == 0
    assert tested.newest(at("2026-03-01T08:00Z"), at("2026-03-01T09:00Z"), 0) == []


def test_instants_may_be_of_any_zone_and_a_second_pass_is_one():
    tested = Schedule(("30 1 * * *",), "America/New_York")
    second_pass = datetime(2026, 11, 1, 1, 10, tzinfo=ZoneInfo("America/New_York"), fold=1)

    assert tested.after(second_pass) == at("2026-11-02T06:30Z")
    assert tested.before(second_pass) == at("2026-11-01T05:30Z")


def test_naive_instants_are_refused():
    tested = Schedule(("30 1 * * *",), "UTC")
    naive = datetime(2026, 3, 1)

    for ask in (tested.after, tested.before):
        with pytest.raises(ValueError, match="needs a zone"):
            ask(naive)
    with pytest.raises(ValueError, match="needs a zone"):
        tested.between(naive, naive)


@pytest.mark.parametrize(
    ("day_match", "expected"),
    [("cron", ["02", "06", "09", "13"]), ("or", ["02", "06", "09", "13"]), ("and", ["13"])],
)
def test_both_days_restricted(day_match, expected):
    tested = Schedule(("0 0 2,9,13 * 5",), "UTC", day_match)
    found = tested.between(at("2026-03-01T00:00Z"), at("2026-03-14T00:00Z"))

    assert [f"{moment:%d}" for moment in found] == expected


@pytest.mark.parametrize(
    ("day_match", "expected"),
    [("cron", ["09"]), ("or", ["01", "02", "03", "05", "07", "09", "11", "13"]), ("and", ["09"])],
)
def test_a_restricted_day_that_begins_with_a_star(day_match, expected):
    tested = Schedule(("0 0 */2 * 1",), "UTC", day_match)
    found = tested.between(at("2026-03-01T00:00Z"), at("2026-03-14T00:00Z"))

    assert [f"{moment:%d}" for moment in found] == expected


@pytest.mark.parametrize("day_match", ["cron", "or", "and"])
@pytest.mark.parametrize("free", ["*", "?", "*/1", "*,10"])
def test_an_unrestricted_day_leaves_it_to_the_other(day_match, free):
    assert following(f"0 0 {free} * 1", "UTC", "2026-03-01T00:00Z", 2, day_match=day_match) == [
        "2026-03-02 00:00:00+0000",
        "2026-03-09 00:00:00+0000",
    ]


def test_a_union_with_an_nth_weekday_is_a_union():
    assert [text[:10] for text in following("0 0 13 * 5#2", "UTC", "2026-03-01T00:00Z", 4)] == [
        "2026-03-13",
        "2026-04-10",
        "2026-04-13",
        "2026-05-08",
    ]


def test_a_list_is_a_union_and_counts_an_instant_once():
    tested = Schedule(("*/5 * * * *", "*/7 * * * *", "0 9 * * *", "0 0 9 * * *"), "UTC")
    first, last = at("2026-03-01T00:00Z"), at("2026-03-31T23:59Z")

    everything = list(tested.between(first, last))

    assert len(everything) == len(set(everything)) == tested.count(first, last) == 31 * 24 * (12 + 9 - 2)


def test_a_list_keeps_the_class_of_each_expression_over_a_fold():
    assert following(["30 1 * * *", "15 * * * *"], "America/New_York", "2026-11-01T01:00-04:00", 4) == [
        "2026-11-01 01:15:00-0400",
        "2026-11-01 01:30:00-0400",
        "2026-11-01 01:15:00-0500",
        "2026-11-01 02:15:00-0500",
    ]


def test_made_up_and_real_at_one_instant_are_one_occurrence():
    tested = Schedule(("30 2,3 * * *", "0 3 * * *", "*/30 * * * *"), "America/New_York")
    first, last = at("2026-03-08T06:59Z"), at("2026-03-08T07:01Z")

    assert list(tested.between(first, last)) == [at("2026-03-08T07:00Z")]
    assert tested.count(first, last) == 1
    assert tested.before(last) == at("2026-03-08T07:00Z")


@pytest.mark.parametrize(
    ("expression", "zone", "start", "expected"),
    [
        ("*/20 30 2 * * *", "America/New_York", "2026-03-08T00:00-05:00", "2026-03-09 02:30:00-0400"),
        ("30 30 1 * * *", "America/New_York", "2026-11-01T01:31-04:00", "2026-11-01 01:30:30-0500"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00Z", "2104-02-29 00:00:00+0000"),
        ("30 12 29 2 *", "Europe/Berlin", "2028-02-29T12:30+01:00", "2032-02-29 12:30:00+0100"),
        ("0 0 * * 0-7/7", "UTC", "2026-03-01T00:00Z", "2026-03-08 00:00:00+0000"),
        ("@Weekly ", "UTC", "2026-03-01T00:00Z", "2026-03-08 00:00:00+0000"),
        ("0 0 * feb fRiL", "UTC", "2026-03-01T00:00Z", "2027-02-26 00:00:00+0000"),
        ("30 8 * * *", "Antarctica/Casey", "2018-03-10T00:00Z", "2018-03-11 08:30:00+0800"),
        ("30 3 * * *", "Antarctica/Casey", "2009-10-17T17:00Z", "2009-10-18 05:00:00+1100"),
        ("30 0 * * *", "Antarctica/Casey", "2010-03-04T14:00Z", "2010-03-06 00:30:00+0800"),
        ("*/30 0 * * *", "Antarctica/Casey", "2010-03-04T14:00Z", "2010-03-05 00:00:00+0800"),
        ("15 23 * * *", "Asia/Pyongyang", "2018-05-04T10:00Z", "2018-05-04 23:15:00+0830"),
        ("45 23 * * *", "Asia/Pyongyang", "2018-05-04T10:00Z", "2018-05-05 00:00:00+0900"),
        ("45 23 * * *", "Asia/Pyongyang", "2015-08-14T14:46Z", "2015-08-15 23:45:00+0830"),
        ("20 0 * * *", "Africa/Monrovia", "1972-01-06T12:00Z", "1972-01-07 00:44:30+0000"),
    ],
)
def test_single_rules(expression, zone, start, expected):
    assert following(expression, zone, start, 1) == [expected]


@pytest.mark.parametrize(
    ("expression", "zone", "due"),
    [
        ("0 0 1 1 1", "Asia/Shanghai", "2028-12-31T16:00Z"),  # the local 1 January is in the UTC year before
        ("0 20 31 12 5", "America/New_York", "2028-01-01T01:00Z"),
    ],
)
def test_rare_dates_at_the_turn_of_the_year(expression, zone, due):
    tested, moment = Schedule((expression,), zone, "and"), at(due)

    assert tested.after(moment - timedelta(days=100)) == moment
    assert tested.before(moment + timedelta(days=100)) == moment
    assert tested.count(moment - timedelta(days=100), moment + timedelta(days=100)) == 1


def test_what_a_gap_makes_up_is_found_from_both_sides():
    tested, made_up = Schedule(("30 2 * * *",), "America/New_York"), at("2026-03-08T07:00Z")
    first, last = made_up - timedelta(hours=3), made_up + timedelta(hours=3)

    assert tested.after(first) == tested.before(last) == made_up
    assert list(tested.between(first, last)) == tested.newest(first, last, 5) == [made_up]
    assert tested.count(first, last) == 1


def test_a_skipped_day_makes_nothing_up():
    assert following(["0 0 * * *", "*/30 23 * * *"], "Pacific/Apia", "2011-12-29T22:00-10:00", 3) == [
        "2011-12-29 23:00:00-1000",
        "2011-12-29 23:30:00-1000",
        "2011-12-31 00:00:00+1400",
    ]


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("H * * * *", range(60)),
        ("H(10-20) * * * *", range(10, 21)),
        ("H/15 * * * *", range(60)),
        ("H(0-29)/10 * * * *", range(30)),
    ],
)
def test_hashed_minutes_lie_in_their_range_and_spread(expression, values):
    start, end = at("2026-03-01T00:00Z"), at("2026-03-01T00:59Z")
    minutes = {
        moment.minute
        for n in range(300)
        for moment in Schedule((expression,), "UTC", hash_name=f"job-{n}").between(start, end)
    }

    assert minutes == set(values)


def test_hashed_steps_keep_their_distance():
    tested = Schedule(("H/15 * * * *",), "UTC", hash_name="report")
    first, second = tested.newest(at("2026-03-01T00:00Z"), at("2026-03-02T00:00Z"), 2)

    assert second - first == timedelta(minutes=15)
    assert tested.count(at("2026-03-01T00:00Z"), at("2026-03-01T00:59Z")) == 4


def test_a_hashed_day_exists_in_every_month():
    for n in range(100):
        tested = Schedule(("0 0 H * *",), "UTC", hash_name=f"job-{n}")

        assert tested.count(at("2026-01-01T00:00Z"), at("2026-12-31T23:59Z")) == 12


def test_times_that_always_fall_into_a_gap_end_in_none():
    tested = Schedule(("*/5 2 8-14 3 0",), "America/New_York", "and")

    assert tested.after(at("2026-01-01T00:00Z")) is None
    assert tested.before(at("1900-01-01T00:00Z")) is not None


def test_the_ends_of_the_calendar_are_no_errors():
    tested = Schedule(("0 0 * * *",), "America/New_York")

    assert tested.after(datetime.max.replace(tzinfo=UTC)) is None
    assert tested.before(datetime.min.replace(tzinfo=UTC)) is None
    assert tested.after(datetime.min.replace(tzinfo=UTC)) is not None
    assert tested.before(datetime.max.replace(tzinfo=UTC)) is not None
    everything = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert len(tested.newest(*everything, 3)) == 3
    assert next(tested.between(*everything)).year == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ((), "UTC"),
        ("* * * * *", "UTC"),
        ((None,), "UTC"),
        ((5,), "UTC"),
        (([],), "UTC"),
        (("* * * * *",), None),
        (("* * * * *",), ["UTC"]),
        (("* * * * *",), "UTC", "xor"),
        (("* * * * *",), "UTC", None),
        (("* * * * *",), "UTC", ["cron"]),
        (("* * * * *",), "UTC", "cron", None),
        (("* * * * *",) * 101, "UTC"),
        (("0 0 10,15 * 5#2,1L",), "UTC", "and", 5),
        (("0 0 1,15 * 5#2,1L",), "UTC", "and"),
    ],
)
def test_wrong_types_and_combinations_are_refused(arguments):
    with pytest.raises(ScheduleError) as refusal:
        Schedule(*arguments)

    assert refusal.value.hint


def test_equal_schedules_are_equal():
    one, two = Schedule(("@daily",), "UTC"), Schedule(["@daily"], "UTC")  # type: ignore[arg-type]

    assert one == two
    assert hash(one) == hash(two)
