"""What becomes of owed instants: the corners, one by one."""

from __future__ import annotations

from datetime import timedelta
from time import perf_counter

import pytest

from scheduler.core.excuses import excuses
from scheduler.core.job import CatchUp
from scheduler.core.model import Cause, Skip, Status
from scheduler.core.policy import Plan, plan

from .builders import TICK, at, fixed, job, judged, owed, pause, recurring, unfinished, words

MINUTE = timedelta(minutes=1)
NOW = at("2026-03-01 10:05:02")
DUE = at("2026-03-01 10:05")


# ------------------------------------------------------------------------------------------------ nothing owed


@pytest.mark.parametrize(
    ("tested", "since"),
    [(job(None), DUE), (job(), None), (job(), NOW + TICK)],
    ids=["without a schedule", "schedule without a future", "not yet due"],
)
def test_nothing_owed_changes_nothing(tested, since):
    assert plan(tested, owed(since, [unfinished("a")]), NOW) == Plan((), since)


def test_an_instant_is_due_at_its_own_microsecond():
    assert words(judged(job(), DUE, DUE)) == ["03-01 10:05:00 schedule"]
    assert words(judged(job(), DUE, DUE - TICK)) == []


# ------------------------------------------------------------------------------------------------ catch-up


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("late", [MINUTE - TICK, timedelta(0)])
def test_less_than_a_minute_late_is_late_not_missed(catch_up, late):
    assert words(judged(job("5 10 * * *", catch_up=catch_up), DUE, DUE + late)) == ["03-01 10:05:00 schedule"]


@pytest.mark.parametrize(
    ("catch_up", "word"), [(CatchUp.LATEST, "catch_up"), (CatchUp.ALL, "catch_up"), (CatchUp.NONE, "1 missed")]
)
def test_from_a_minute_on_catch_up_decides(catch_up, word):
    assert words(judged(job("5 10 * * *", catch_up=catch_up), DUE, DUE + MINUTE)) == [f"03-01 10:05:00 {word}"]


@pytest.mark.parametrize(
    ("catch_up", "entries"),
    [
        (CatchUp.LATEST, ["03-01 10:02:00..10:04:00 3 missed", "03-01 10:05:00 schedule"]),
        (CatchUp.NONE, ["03-01 10:02:00..10:04:00 3 missed", "03-01 10:05:00 schedule"]),
        (CatchUp.ALL, [*(f"03-01 10:0{n}:00 catch_up" for n in (2, 3, 4)), "03-01 10:05:00 schedule"]),
    ],
)
def test_older_instants_are_missed_whatever_their_age(catch_up, entries):
    assert words(judged(job(catch_up=catch_up), at("2026-03-01 10:02"), NOW)) == entries


def test_older_seconds_are_missed_even_when_less_than_a_minute_old():
    tested = job("*/20 * * * * *", catch_up=CatchUp.LATEST)

    assert words(judged(tested, at("2026-03-01 10:00"), at("2026-03-01 10:00:45"))) == [
        "03-01 10:00:00..10:00:20 2 missed",
        "03-01 10:00:40 schedule",
    ]


@pytest.mark.parametrize(
    ("waiting", "entry"),
    [
        (unfinished("a", Status.PENDING, Cause.CATCH_UP), "1 missed"),
        (unfinished("a", Status.PENDING, Cause.SCHEDULE), "1 missed"),
        (unfinished("a", Status.PENDING, Cause.SCHEDULE, holder="other"), "catch_up"),
        (unfinished("a", Status.PENDING, Cause.CATCH_UP, attempt=1), "catch_up"),
        (unfinished("a", Status.RUNNING, Cause.CATCH_UP), "catch_up"),
        (unfinished("a", Status.PENDING, Cause.MANUAL), "catch_up"),
        (unfinished("a", Status.PENDING, Cause.EVENT), "catch_up"),
    ],
)
def test_latest_is_made_up_for_by_an_occurrence_that_has_not_begun(waiting, entry):
    """It starts later than the instant that was missed: a second one behind it would do the same again."""
    found = judged(job("5 10 * * *"), DUE, DUE + MINUTE, [waiting])
    assert words(found) == [f"03-01 10:05:00 {entry}"]
    if entry == "1 missed":
        (skip,) = found.entries
        assert skip.blocked_by == "a"
        assert skip.detail == "run a, which is still waiting, makes up for it"


@pytest.mark.parametrize(
    ("how", "owed", "late", "why"),
    [
        ({"catch_up": CatchUp.NONE}, "09:00", 2 * MINUTE, "catch_up: none"),
        ({}, "09:00", 2 * MINUTE, "catch_up: latest, and a newer one runs"),
        ({}, "09:00", MINUTE / 2, "catch_up: latest, and a newer one was due"),
        ({"catch_up_window": MINUTE}, "09:00", 2 * MINUTE, "older than catch_up_window: 1m"),
        (
            {"catch_up": CatchUp.ALL, "catch_up_window": 9 * MINUTE},
            "09:00",
            2 * MINUTE,
            "older than catch_up_window: 9m",
        ),
        ({"catch_up": CatchUp.ALL, "catch_up_max": 3}, "09:00", 2 * MINUTE, "more than catch_up_max: 3"),
    ],
)
def test_what_is_missed_says_why(how, owed, late, why):
    found = judged(job("*/5 * * * *", **how), at(f"2026-03-01 {owed}"), DUE + late)
    (skip,) = (entry for entry in found.entries if isinstance(entry, Skip))
    assert (skip.reason, skip.detail) == ("missed", why)


def test_all_counts_what_waits_already():
    tested = job("*/5 * * * *", catch_up=CatchUp.ALL, catch_up_max=3)
    waiting = [unfinished(name, Status.PENDING, Cause.CATCH_UP) for name in ("a", "b")]
    late = DUE + 2 * MINUTE

    assert words(judged(tested, at("2026-03-01 09:55"), late, waiting)) == [
        "03-01 09:55:00..10:00:00 2 missed",
        "03-01 10:05:00 catch_up",
    ]
    waiting += [unfinished(name, Status.PENDING, Cause.CATCH_UP) for name in ("c", "d")]
    assert words(judged(tested, at("2026-03-01 10:05"), late, waiting)) == ["03-01 10:05:00 1 missed"]


def test_latest_reaches_back_to_the_edge_of_its_window():
    tested = job("5 10 * * *", catch_up_window=timedelta(hours=2))

    assert words(judged(tested, DUE, DUE + timedelta(hours=2))) == ["03-01 10:05:00 catch_up"]
    assert words(judged(tested, DUE, DUE + timedelta(hours=2) + TICK)) == ["03-01 10:05:00 1 missed"]


def test_all_is_bounded_by_its_window_and_by_its_number():
    tested = job("0 * * * *", catch_up=CatchUp.ALL, catch_up_window=timedelta(hours=4), catch_up_max=3)
    since, now = at("2026-03-01 01:00"), at("2026-03-01 10:30")

    assert words(judged(tested, since, now)) == [
        "03-01 01:00:00..07:00:00 7 missed",
        "03-01 08:00:00 catch_up",
        "03-01 09:00:00 catch_up",
        "03-01 10:00:00 catch_up",
    ]
    narrow = job("0 * * * *", catch_up=CatchUp.ALL, catch_up_window=timedelta(hours=1.5), catch_up_max=3)
    assert words(judged(narrow, since, now)) == [
        "03-01 01:00:00..08:00:00 8 missed",
        "03-01 09:00:00 catch_up",
        "03-01 10:00:00 catch_up",
    ]


def test_the_instant_that_is_due_now_takes_no_place_of_catch_up():
    tested = job(catch_up=CatchUp.ALL, catch_up_max=2)

    assert words(judged(tested, at("2026-03-01 10:00"), NOW)) == [
        "03-01 10:00:00..10:02:00 3 missed",
        "03-01 10:03:00 catch_up",
        "03-01 10:04:00 catch_up",
        "03-01 10:05:00 schedule",
    ]


def test_all_runs_the_missed_ones_also_while_a_run_blocks_the_one_that_is_due():
    found = judged(job(catch_up=CatchUp.ALL), at("2026-03-01 10:04"), NOW, [unfinished("blocker1")])

    assert words(found) == ["03-01 10:04:00 catch_up", "03-01 10:05:00 1 overlap"]


def test_missed_instants_are_not_judged_by_overlap():
    found = judged(job("5 10 * * *"), DUE, DUE + timedelta(hours=1), [unfinished("blocker1")])

    assert words(found) == ["03-01 10:05:00 catch_up"]
    assert found.cancel == ()


def test_what_was_asked_for_after_the_instant_was_not_in_its_way():
    after = unfinished("asked for", cause=Cause.API, asked="2026-03-01 10:05:01")
    then = unfinished("asked for", cause=Cause.API, asked="2026-03-01 10:05")

    assert words(judged(job(), DUE, NOW, [after])) == ["03-01 10:05:00 schedule"]
    assert words(judged(job(), DUE, NOW, [then])) == ["03-01 10:05:00 1 overlap"]
    assert judged(job(), DUE, NOW, [after, then]).entries[0].blocked_by == then.run


# ------------------------------------------------------------------------------------------------ pauses, blackouts


@pytest.mark.parametrize(
    ("start", "until", "entries"),
    [
        ("10:04", "10:05", ["03-01 10:03:00 1 missed", "03-01 10:04:00 1 paused", "03-01 10:05:00 schedule"]),
        ("10:04:00.000001", "10:05", ["03-01 10:03:00..10:04:00 2 missed", "03-01 10:05:00 schedule"]),
        ("10:05", None, ["03-01 10:03:00 1 missed", "03-01 10:04:00 catch_up", "03-01 10:05:00 1 paused"]),
        ("09:00", "10:05:00.000001", ["03-01 10:03:00..10:05:00 3 paused"]),
        ("09:00", None, ["03-01 10:03:00..10:05:00 3 paused"]),
        ("09:00", "10:03", ["03-01 10:03:00..10:04:00 2 missed", "03-01 10:05:00 schedule"]),
        ("10:05:01", None, ["03-01 10:03:00..10:04:00 2 missed", "03-01 10:05:00 schedule"]),
    ],
)
@pytest.mark.parametrize("kind", ["paused", "blackout"])
def test_the_begin_of_a_stretch_belongs_to_it_its_end_does_not(start, until, entries, kind):
    begin = at(f"2026-03-01 {start}")
    end = at(f"2026-03-01 {until}") if until else None
    pauses = [pause(begin, end)] if kind == "paused" else []
    blackouts = (fixed(begin, end or at("2027-01-01")),) if kind == "blackout" else ()

    found = judged(job(blackouts=blackouts), at("2026-03-01 10:03"), NOW, pauses=pauses)

    assert words(found) == [entry.replace("paused", kind) for entry in entries]


def test_the_newest_instant_outside_a_pause_is_the_one_that_can_be_due():
    found = judged(
        job("*/20 * * * * *"),
        at("2026-03-01 10:00"),
        at("2026-03-01 10:00:45"),
        pauses=[pause(at("2026-03-01 10:00:40"), None)],
    )

    assert words(found) == ["03-01 10:00:00 1 missed", "03-01 10:00:20 schedule", "03-01 10:00:40 1 paused"]
    assert found.next_due_at == at("2026-03-01 10:01")


def test_a_recurring_blackout_that_began_before_the_range_covers_its_beginning():
    tested = job("*/30 * * * *", blackouts=(recurring("0 22 * * *", timedelta(hours=8), reason="night"),))
    found = judged(tested, at("2026-03-01 05:00"), at("2026-03-01 06:30"))

    assert words(found) == [
        "03-01 05:00:00..05:30:00 2 blackout",
        "03-01 06:00:00 1 missed",
        "03-01 06:30:00 schedule",
    ]
    assert isinstance(found.entries[0], Skip)
    assert found.entries[0].detail == "night"


def test_a_recurring_blackout_lasts_in_real_time_on_the_night_when_the_clock_changes():
    night = recurring("0 22 * * *", timedelta(hours=8), "Europe/Berlin")
    spring = job("0 * * * *", "Europe/Berlin", blackouts=(night,))
    found = judged(spring, at("2026-03-28 21:00+01:00"), at("2026-03-29 08:00+02:00"))

    assert words(found) == [
        "03-28 20:00:00 1 missed",
        "03-28 21:00:00..04:00:00 8 blackout",
        "03-29 05:00:00 1 missed",  # 07:00 in Berlin: eight hours after 22:00
        "03-29 06:00:00 schedule",
    ]


def test_blackouts_that_overlap_themselves_are_one_stretch():
    tested = job(blackouts=(recurring("*/5 * * * *", 6 * MINUTE),))

    assert words(judged(tested, at("2026-03-01 08:00"), NOW)) == ["03-01 08:00:00..10:05:00 126 blackout"]


def test_stretches_between_which_no_instant_lies_are_one_entry():
    tested = job("0 * * * *", blackouts=(recurring("58 * * * *", 4 * MINUTE),))

    assert words(judged(tested, at("2026-03-01 01:00"), NOW)) == ["03-01 01:00:00..10:00:00 10 blackout"]


def test_blackouts_without_an_instant_in_them_leave_no_trace():
    tested = job("0 * * * *", catch_up=CatchUp.NONE, blackouts=(recurring("30 * * * *", 4 * MINUTE),))

    assert words(judged(tested, at("2026-03-01 01:00"), NOW)) == ["03-01 01:00:00..10:00:00 10 missed"]


def test_different_reasons_are_different_entries_and_a_pause_goes_first():
    tested = job(
        blackouts=(
            fixed(at("2026-03-01 10:01"), at("2026-03-01 10:04"), "inventory"),
            fixed(at("2026-03-01 10:03"), at("2026-03-01 10:06"), "migration"),
        )
    )
    pauses = [pause(at("2026-03-01 10:02"), at("2026-03-01 10:03"), "on call")]
    found = judged(tested, at("2026-03-01 10:00"), NOW, pauses=pauses)

    assert words(found) == [
        "03-01 10:00:00 catch_up",
        "03-01 10:01:00 1 blackout",
        "03-01 10:02:00 1 paused",
        "03-01 10:03:00 1 blackout",
        "03-01 10:04:00..10:05:00 2 blackout",
    ]
    assert [entry.detail for entry in found.entries if isinstance(entry, Skip)] == [
        "inventory",
        "on call (ops)",
        "inventory",
        "migration",
    ]


def test_excuses_are_cut_to_the_range_ascending_and_without_overlaps():
    first, last = at("2026-03-01 10:00"), at("2026-03-01 12:00")
    pauses = [pause(at("2026-03-01 11:00"), None, "b"), pause(at("2026-02-01"), at("2026-03-01 10:10"), "a")]
    blackouts = [
        fixed(at("2026-03-01 10:20"), at("2026-03-01 10:40")),
        recurring("*/30 * * * *", 15 * MINUTE),
        fixed(at("2026-03-01 10:25"), at("2026-03-01 10:35"), "inside"),
    ]
    found = excuses(pauses, blackouts, first, last)

    assert [(one.start, one.end, one.detail) for one in found] == [
        (first, at("2026-03-01 10:10"), "a (ops)"),
        (at("2026-03-01 10:10"), at("2026-03-01 10:15"), "recurring"),
        (at("2026-03-01 10:20"), at("2026-03-01 10:40"), "fixed"),
        (at("2026-03-01 10:40"), at("2026-03-01 10:45"), "recurring"),
        (at("2026-03-01 11:00"), last + TICK, "b (ops)"),
    ]


# ------------------------------------------------------------------------------------------------ schedules


def test_an_instant_of_several_expressions_is_one_occurrence():
    tested = job(["*/10 * * * *", "0 * * * *", "*/15 * * * *"], catch_up=CatchUp.ALL)

    assert words(judged(tested, at("2026-03-01 09:45"), at("2026-03-01 10:10"))) == [
        "03-01 09:45:00 catch_up",
        "03-01 09:50:00 catch_up",
        "03-01 10:00:00 catch_up",
        "03-01 10:10:00 schedule",
    ]


def test_days_when_the_clock_changes():
    both = job(["30 2 * * *", "*/30 * * * *"], "Europe/Berlin", catch_up=CatchUp.NONE)
    spring = judged(both, at("2026-03-29 00:00"), at("2026-03-29 02:00:01"))
    autumn = judged(both, at("2026-10-24 23:00"), at("2026-10-25 02:00:01"))

    assert words(spring) == ["03-29 00:00:00..01:30:00 4 missed", "03-29 02:00:00 schedule"]
    assert words(autumn) == ["10-24 23:00:00..01:30:00 6 missed", "10-25 02:00:00 schedule"]

    fixed_time = job("30 2 * * *", "Europe/Berlin", catch_up=CatchUp.ALL, catch_up_window=timedelta(days=3))
    assert words(judged(fixed_time, at("2026-03-28 01:30"), at("2026-03-30 09:00"))) == [
        "03-28 01:30:00 catch_up",
        "03-29 01:00:00 catch_up",  # 02:30 does not exist: the first instant after the gap
        "03-30 00:30:00 catch_up",
    ]


# ------------------------------------------------------------------------------------------------ cost


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize(
    ("text", "since"),
    [("* * * * *", "2026-01-30"), ("*/1 * * * * *", "2026-01-30"), ("* * * * *", "2019-01-01")],
    ids=["30 days of minutes", "30 days of seconds", "seven years of minutes"],
)
def test_a_long_time_makes_few_entries(text, since, catch_up, record_property):
    tested = job(text, "Europe/Berlin", catch_up=catch_up)
    began = perf_counter()
    found = judged(tested, at(since), NOW)
    record_property("milliseconds", round((perf_counter() - began) * 1000, 1))

    assert len(found.entries) == (102 if catch_up is CatchUp.ALL else 2)
    assert isinstance(found.entries[0], Skip)
    assert isinstance(found.entries[-1], Skip) is False


def test_entries_grow_with_the_blackouts_that_have_instants(record_property):
    month = at("2026-01-30"), at("2026-03-01 00:00")
    began = perf_counter()
    hourly = judged(job(blackouts=(recurring("10 * * * *", 5 * MINUTE),), catch_up=CatchUp.NONE), *month)
    rare = judged(job("0 3 * * *", blackouts=(recurring("*/5 * * * *", MINUTE),)), *month)
    record_property("milliseconds", round((perf_counter() - began) * 1000, 1))

    assert len(hourly.entries) == 30 * 24 * 2 + 1 + 1  # before, in and after each; the last minute is due
    assert words(rare) == ["01-30 03:00:00..03:00:00 30 blackout"]
