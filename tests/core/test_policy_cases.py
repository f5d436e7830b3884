"""Public bug reports about missed runs, steps of the clock (family C) and silence (family H), at the level of the pure
core. The number of the case is the name of its test.

Covered elsewhere:
C07 the loop that wakes every second whatever the clock does: tests/engine. H02 H04 H05 H07 H08 H19 which series exist,
with which labels and buckets, at load and after a reload, on two nodes: tests/observe. H17 H20 rules of alerts: with
the rules. The halves of C14 and C16 that move `next_due_at`, and of C26 that write rows and count: tests/engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from scheduler.core.deadline import deadline
from scheduler.core.errors import ScheduleError
from scheduler.core.job import CatchUp, Job, Overlap, Watch
from scheduler.core.model import Skip, SkipReason, Status
from scheduler.core.policy import plan
from scheduler.core.requests import Unfinished
from scheduler.core.schedule import Schedule

from .builders import at, fixed, job, judged, owed, pause, unfinished, words

ELSEWHERE = {"C07", "H02", "H04", "H05", "H07", "H08", "H17", "H19", "H20"}
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def test_no_case_is_left_out() -> None:
    lines = (Path(__file__).parent.parent / "cases" / "running.jsonl").read_text("utf-8").splitlines()
    cases = {case["id"] for case in map(json.loads, lines) if case["family"] in ("C", "H")}
    here = {name[5:8].upper() for name in globals() if name.startswith(("test_c", "test_h"))}

    assert len(cases) == 32
    assert here | ELSEWHERE == cases
    assert not here & ELSEWHERE


# ------------------------------------------------------------------------------------------------ one job over time


@dataclass
class Life:
    """A job with one lock, its planner and its runs, each of which takes `takes`; `look` is one turn of the loop."""

    job: Job
    next_due: datetime | None
    takes: timedelta
    starts: list[tuple[datetime, datetime]] = field(default_factory=list)
    """(instant, start)"""
    skips: list[Skip] = field(default_factory=list)
    waiting: list[datetime] = field(default_factory=list)
    over: datetime | None = None

    def look(self, now: datetime) -> None:
        if self.over is not None and self.over <= now:
            self._start_oldest(self.over)
        found = plan(self.job, owed(self.next_due, self._unfinished()), now)
        self.next_due = found.next_due_at
        for entry in found.entries:
            if isinstance(entry, Skip):
                self.skips.append(entry)
            else:
                self.waiting.append(entry.instant)
        if self.over is None:
            self._start_oldest(now)

    def _start_oldest(self, now: datetime) -> None:
        self.over = None
        if self.waiting:
            self.starts.append((self.waiting.pop(0), now))
            self.over = now + self.takes

    def _unfinished(self) -> list[Unfinished]:
        running = [unfinished("running0")] if self.over is not None else []
        return running + [unfinished("waiting0", Status.PENDING) for _ in self.waiting]


def every(step: timedelta, first: datetime, last: datetime) -> Iterator[datetime]:
    while first <= last:
        yield first
        first += step


# ------------------------------------------------------------------------------------------------ C: runs


def test_c01_late_by_two_seconds_runs_for_its_instant() -> None:
    assert words(judged(job("0 3 * * *"), at("2026-03-01 03:00"), at("2026-03-01 03:00:01.800"))) == [
        "03-01 03:00:00 schedule"
    ]


@pytest.mark.parametrize(("catch_up", "word"), [(CatchUp.LATEST, "catch_up"), (CatchUp.NONE, "1 missed")])
def test_c02_asleep_over_the_instant(catch_up: CatchUp, word: str) -> None:
    found = judged(job("0 3 * * *", catch_up=catch_up), at("2026-03-01 03:00"), at("2026-03-01 09:00"))

    assert words(found) == [f"03-01 03:00:00 {word}"]
    assert found.next_due_at == at("2026-03-02 03:00")


def test_c04_three_hundred_missed_minutes_do_not_stop_the_job() -> None:
    life = Life(job(), at("2026-03-01 05:00"), SECOND)
    for now in every(MINUTE, at("2026-03-01 10:01:30") - MINUTE, at("2026-03-01 10:05:30")):
        life.look(now)

    assert [instant for instant, _ in life.starts] == list(
        every(MINUTE, at("2026-03-01 10:00"), at("2026-03-01 10:05"))
    )
    assert sum(skip.count for skip in life.skips) == 300


@pytest.mark.parametrize(("text", "count"), [("* * * * *", 43_200), ("*/1 * * * * *", 2_592_000)])
def test_c05_thirty_days_are_a_few_entries(text: str, count: int) -> None:
    now = at("2026-03-31 00:00")
    found = judged(job(text), now - 30 * DAY, now)

    assert [type(entry) is Skip and entry.count for entry in found.entries] == [count, False]


def test_c08_woken_too_early_there_is_nothing_to_do() -> None:
    life = Life(job("45 8 * * *"), at("2026-03-01 08:45"), SECOND)
    for now in ("08:44:59.997", "08:45:00.001", "08:44:59.999", "08:45:00.002"):
        life.look(at(f"2026-03-01 {now}"))

    assert [instant for instant, _ in life.starts] == [at("2026-03-01 08:45")]
    assert life.next_due == at("2026-03-02 08:45")


def test_c10_a_run_longer_than_the_period() -> None:
    life = Life(job(), at("2026-03-01 10:00"), timedelta(seconds=150))
    for now in every(SECOND, at("2026-03-01 10:00"), at("2026-03-01 10:07")):
        life.look(now)

    minutes = [at(f"2026-03-01 10:0{n}") for n in (0, 3, 6)]
    assert life.starts == [(minute, minute) for minute in minutes]
    assert [(skip.first.minute, str(skip.reason)) for skip in life.skips] == [
        (1, "overlap"),
        (2, "overlap"),
        (4, "overlap"),
        (5, "overlap"),
        (7, "overlap"),
    ]


def test_c11_one_waits() -> None:
    life = Life(job("*/2 * * * * *", overlap=Overlap.QUEUE), at("2026-03-01 10:00"), timedelta(seconds=3))
    most = 0
    for now in every(SECOND, at("2026-03-01 10:00"), at("2026-03-01 10:01")):
        life.look(now)
        most = max(most, len(life.waiting))

    begun = [start for _, start in life.starts]
    assert most == 1
    assert begun == list(every(timedelta(seconds=3), begun[0], begun[-1])), "each starts when the one before ends"
    assert len(begun) == 21


def test_c13_an_instant_in_a_pause_is_not_missed() -> None:
    paused = pause(at("2026-03-01 00:55"), at("2026-03-01 01:55"))
    found = judged(job("0 * * * *"), at("2026-03-01 01:00"), at("2026-03-01 01:55"), pauses=[paused])

    assert words(found) == ["03-01 01:00:00 1 paused"]
    assert found.next_due_at == at("2026-03-01 02:00")


def test_c14_a_new_schedule_owes_nothing_before_it_was_loaded() -> None:
    loaded = at("2026-03-01 10:30")
    tested = job("0 10 * * *")
    assert tested.schedule is not None
    found = judged(tested, tested.schedule.after(loaded), loaded)

    assert found.entries == ()
    assert found.next_due_at == at("2026-03-02 10:00")


def test_c16_neither_does_a_new_zone() -> None:
    changed = at("2017-09-13 20:50")
    tested = job("30 16 * * *", "America/New_York")
    assert tested.schedule is not None
    found = judged(tested, tested.schedule.after(changed), changed)

    assert found.entries == ()
    assert found.next_due_at == at("2017-09-14 16:30-04:00")


def test_c17_instants_do_not_drift() -> None:
    began = at("2026-03-01 10:00")
    life = Life(job("* * * * * *"), began, timedelta(milliseconds=6))
    now = began
    for _ in range(1000):
        life.look(now)
        assert life.next_due is not None
        now = life.next_due + timedelta(milliseconds=6)

    assert [instant for instant, _ in life.starts] == list(every(SECOND, began, began + 999 * SECOND))
    assert life.skips == []


def test_c19_time_that_nobody_looked_at_is_looked_at_later() -> None:
    life = Life(job("30 10 * * *"), at("2026-03-01 10:30"), SECOND)
    for now in ("10:29:50", "10:31:05", "10:32:04.980"):
        life.look(at(f"2026-03-01 {now}"))

    assert [instant for instant, _ in life.starts] == [at("2026-03-01 10:30")]


@pytest.mark.parametrize("text", ["30 2 * * *", "30 1 * * *", "*/30 * * * *", "0 0 2 * * *"])
def test_c20_the_next_instant_lies_always_ahead(text: str) -> None:
    tested = job(text, "America/New_York")
    for day in ("2026-03-08", "2026-11-01"):
        for now in every(timedelta(minutes=7, seconds=30), at(f"{day} 04:00"), at(f"{day} 09:00")):
            found = judged(tested, at("2026-03-01"), now)
            assert found.next_due_at is not None
            assert found.next_due_at > now
            assert judged(tested, found.next_due_at, now).entries == ()


def test_c22_what_ran_in_the_first_pass_was_not_missed_in_the_second() -> None:
    ran = at("2026-11-01 01:30-04:00")
    tested = job("30 1 * * *", "America/New_York")
    assert tested.schedule is not None
    found = judged(tested, tested.schedule.after(ran), at("2026-11-01 01:45-05:00"))

    assert found.entries == ()
    assert found.next_due_at == at("2026-11-02 01:30-05:00")


def test_c23_a_schedule_that_never_comes_is_refused() -> None:
    with pytest.raises(ScheduleError, match="never come together"):
        Schedule(("0 0 30 2 *",), "UTC")


def test_c25_an_outage_of_61_seconds_loses_no_run() -> None:
    assert words(judged(job("0 3 * * *"), at("2026-03-01 03:00"), at("2026-03-01 03:01:01"))) == [
        "03-01 03:00:00 catch_up"
    ]


@pytest.mark.parametrize(
    ("reason", "make"),
    [
        (SkipReason.OVERLAP, lambda now: judged(job(), now, now, [unfinished("a")])),
        (SkipReason.MISSED, lambda now: judged(job("0 3 * * *"), now - 10 * DAY, now + HOUR)),
        (SkipReason.PAUSED, lambda now: judged(job(), now, now, pauses=[pause(now, None)])),
        (SkipReason.BLACKOUT, lambda now: judged(job(blackouts=(fixed(now, now + DAY),)), now, now)),
    ],
)
def test_c26_what_does_not_run_leaves_a_trace(reason: SkipReason, make: Callable[[datetime], object]) -> None:
    found = make(at("2026-03-01 03:00"))

    assert reason in [entry.reason for entry in found.entries if isinstance(entry, Skip)]  # type: ignore[attr-defined]


def test_c26_so_does_what_waited_too_long_for_a_lock() -> None:
    now = at("2026-03-01 03:00")

    assert judged(job(), now, now, [unfinished("a", Status.PENDING, holder="b")]).give_up == ("a",)


# ------------------------------------------------------------------------------------------------ H: silence


def watched(text: str, zone: str = "UTC", grace: timedelta = HOUR) -> Job:
    return replace(job(text, zone), watch=Watch(grace=grace))


def test_h01_a_job_that_never_ran_is_expected_from_its_first_load_on() -> None:
    loaded = at("2026-03-02 09:00")  # a Monday

    assert deadline(watched("0 3 * * *"), loaded, []) == at("2026-03-03 04:00")


def test_h10_the_deadline_follows_the_jobs_own_zone() -> None:
    success = at("2026-07-01 08:00+02:00")

    assert deadline(watched("0 8 * * *", "Europe/Berlin"), success, []) == at("2026-07-02 06:00") + HOUR


def test_h11_a_success_counts_for_its_instant_whatever_the_clock_said() -> None:
    """The run of 22:51 settles 22:51 although another clock saw its success at 22:50:40."""
    assert deadline(watched("51 22 * * *"), at("2026-03-01 22:51"), []) == at("2026-03-02 23:51")


def test_h13_hours_of_the_day_belong_to_the_expectation() -> None:
    tested = watched("*/5 6-23 * * *", "Europe/Amsterdam", 15 * MINUTE)

    assert deadline(tested, at("2026-03-01 23:55+01:00"), []) == at("2026-03-02 06:15+01:00")


def test_h14_grace_covers_a_run_of_six_hours() -> None:
    tested = watched("0 5 * * *", grace=7 * HOUR)
    found = deadline(tested, at("2026-03-01 05:00"), [])

    assert found is not None
    assert found > at("2026-03-02 11:00")
    assert deadline(tested, at("2026-03-02 05:00"), []) == at("2026-03-03 12:00")


@pytest.mark.parametrize(
    ("text", "day", "expected"),
    [("30 2 * * *", "2026-03-08", "2026-03-08 07:00"), ("30 1 * * *", "2026-11-01", "2026-11-01 05:30")],
)
def test_h16_one_occurrence_is_expected_when_the_clock_changes(text: str, day: str, expected: str) -> None:
    tested = watched(text, "America/New_York")
    found = deadline(tested, at(f"{day} 00:00-05:00") - HOUR, [])

    assert found == at(expected) + HOUR
    following = deadline(tested, found - HOUR, [])
    assert following is not None
    assert following > at(expected) + 22 * HOUR
