"""What becomes of a job's owed instants: the pure judgement of the planner.

Every instant in `[next_due_at, now]` ends in exactly one entry: a run, or a skip with its reason. The cost grows with
the number of entries, of days and of blackouts, not of instants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scheduler.core.durations import format_duration
from scheduler.core.excuses import FOREVER, Excuse, excuses
from scheduler.core.ids import short
from scheduler.core.job import CatchUp, Job, Overlap
from scheduler.core.model import Cause, Skip, SkipReason, Status
from scheduler.core.requests import Due, Unfinished
from scheduler.core.schedule import Schedule
from scheduler.core.value_object import value_object

LATE = timedelta(minutes=1)
"""From this lateness on an instant is missed, and `catch_up` decides about it; before it, it is merely late."""

_TICK = timedelta(microseconds=1)


@value_object
class PlannedRun:
    instant: datetime
    cause: Cause


@value_object
class Plan:
    """`entries` are in the order of their instants. `cancel`: unfinished occurrences to replace. `give_up`: occurrences
    that waited for another job's lock until this one came; they become SKIPPED(lock) first."""

    entries: tuple[PlannedRun | Skip, ...]
    next_due_at: datetime | None
    cancel: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()


def plan(job: Job, due: Due, now: datetime) -> Plan:
    """Judges all instants of `job` in `[due.state.next_due_at, now]`.

    1. Inside a pause or blackout: SKIPPED with that reason.
    2. The newest of the rest, less than a minute late, is due now and judged by `overlap`.
    3. All others are missed and judged by `catch_up`. What it already let run and has not begun counts: of one job at
       most one occurrence (`latest`) or `catch_up_max` (`all`) wait at a time, however often it is late.
    """
    schedule, first = job.schedule, due.state.next_due_at
    if schedule is None or first is None or first > now:
        return Plan((), first)
    if not due.pauses and not job.blackouts:
        newest, following = schedule.next_two(first)
        if newest is not None and newest <= now < (following or FOREVER) and now - newest < LATE:
            return _on_time(job, newest, following, due.unfinished)
    entries: list[PlannedRun | Skip] = []
    open_stretches: list[tuple[datetime, datetime]] = []
    for stretch in _stretches(schedule, excuses(due.pauses, job.blackouts, first, now), first, now):
        if stretch.reason is None:
            open_stretches.append((stretch.first, stretch.last))
        else:
            entries.append(_skip(job, schedule, stretch.first, stretch.last, stretch.reason, stretch.detail))

    cancel: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()
    if open_stretches:
        (newest,) = schedule.newest(*open_stretches[-1], 1)
        waiting, others = _split_waiting(due.unfinished)
        give_up = tuple(one.run for one in waiting)
        due_now = now - newest < LATE
        in_line = _in_line(others)
        runs = _caught_up(job, schedule, open_stretches, newest, now, len(in_line), due_now=due_now)
        missed_until = runs[0].instant if runs else newest + (timedelta(0) if due_now else _TICK)
        made_up_by = in_line[0] if in_line and not due_now and job.catch_up is CatchUp.LATEST else None
        why = _why_missed(job, len(runs) + len(in_line), made_up_by, due_now=due_now)
        for a, b in open_stretches:
            if a < missed_until:
                skip = _skip(job, schedule, a, min(b, missed_until - _TICK), SkipReason.MISSED, why)
                entries.append(replace(skip, blocked_by=made_up_by.run) if made_up_by else skip)
        entries.extend(runs)
        if due_now:
            entry, cancel = _judge_overlap(job, newest, others)
            entries.append(entry)
    entries.sort(key=lambda entry: entry.first if isinstance(entry, Skip) else entry.instant)
    return Plan(tuple(entries), schedule.after(now), cancel, give_up)


def _on_time(job: Job, instant: datetime, following: datetime | None, unfinished: tuple[Unfinished, ...]) -> Plan:
    """The plan where one instant is owed, as of nearly every job at nearly every evaluation: worth its own way."""
    waiting, others = _split_waiting(unfinished)
    entry, cancel = _judge_overlap(job, instant, others)
    return Plan((entry,), following, cancel, tuple(one.run for one in waiting))


@dataclass(slots=True)
class _Stretch:
    """Instants that follow one another and share one judgement; `first` is one of them. No reason: they are open."""

    first: datetime
    last: datetime
    reason: SkipReason | None = None
    detail: str = ""


def _stretches(schedule: Schedule, excused: Iterable[Excuse], first: datetime, last: datetime) -> list[_Stretch]:
    """All instants of `[first, last]`, ascending, in as few stretches as possible."""
    found: list[_Stretch] = []
    instant = schedule.after(first - _TICK)

    def take(until: datetime, reason: SkipReason | None = None, detail: str = "") -> None:
        """Gives the instants before `until` that judgement and moves on to the first after them."""
        nonlocal instant
        if instant is None or instant >= until:
            return
        if found and (found[-1].reason, found[-1].detail) == (reason, detail):
            found[-1].last = until - _TICK
        else:
            found.append(_Stretch(instant, until - _TICK, reason, detail))
        instant = schedule.after(until - _TICK)

    for excuse in excused:
        take(excuse.start)
        take(excuse.end, excuse.reason, excuse.detail)
        if instant is None or instant > last:
            return found
    take(last + _TICK)
    return found


def _caught_up(
    job: Job,
    schedule: Schedule,
    stretches: list[tuple[datetime, datetime]],
    newest: datetime,
    now: datetime,
    waiting: int,
    *,
    due_now: bool,
) -> list[PlannedRun]:
    """The missed instants that run, ascending; `newest` is among them only when it is itself missed. `waiting`: as many
    occurrences are in line already."""
    horizon = now - job.catch_up_window
    if job.catch_up is CatchUp.NONE or (job.catch_up is CatchUp.LATEST and due_now):
        return []
    if job.catch_up is CatchUp.LATEST:
        return [PlannedRun(newest, Cause.CATCH_UP)] if newest >= horizon and not waiting else []
    wanted = job.catch_up_max - waiting
    last = newest - _TICK if due_now else newest
    chosen: list[datetime] = []
    for a, b in reversed(stretches):
        a, b = max(a, horizon), min(b, last)
        if a <= b and len(chosen) < wanted:
            chosen = schedule.newest(a, b, wanted - len(chosen)) + chosen
    return [PlannedRun(instant, Cause.CATCH_UP) for instant in chosen]


def _split_waiting(unfinished: tuple[Unfinished, ...]) -> tuple[list[Unfinished], list[Unfinished]]:
    """(occurrences that still wait for a lock which another job holds, everything else)."""
    waiting = [
        one
        for one in unfinished
        if one.status is Status.PENDING
        and one.attempt == 0
        and one.cause == Cause.SCHEDULE
        and one.foreign_holder is not None
    ]
    return waiting, [one for one in unfinished if one not in waiting]


def _in_line(unfinished: Iterable[Unfinished]) -> list[Unfinished]:
    """Occurrences that have not begun."""
    return [
        one
        for one in unfinished
        if one.status is Status.PENDING and one.attempt == 0 and one.cause in (Cause.SCHEDULE, Cause.CATCH_UP)
    ]


def _judge_overlap(
    job: Job, instant: datetime, unfinished: list[Unfinished]
) -> tuple[PlannedRun | Skip, tuple[str, ...]]:
    """The entry of an occurrence that is due now, and the runs to cancel for it."""
    run = PlannedRun(instant, Cause.SCHEDULE)
    if job.overlap is Overlap.SKIP:
        # what somebody asked for after the instant, which is judged late, was not in its way
        before = next((one for one in unfinished if one.created_at <= instant), None)
        return (run if before is None else _overlap_skip(job, instant, before)), ()
    if job.overlap is Overlap.QUEUE and (in_line := _in_line(unfinished)):
        return _overlap_skip(job, instant, in_line[0]), ()
    if job.overlap is Overlap.REPLACE:
        return run, tuple(one.run for one in unfinished if one.cause == Cause.SCHEDULE)
    return run, ()


def _overlap_skip(job: Job, instant: datetime, blocker: Unfinished) -> Skip:
    what = "is still running" if blocker.status is Status.RUNNING else "is still waiting"
    return Skip(
        job.name,
        SkipReason.OVERLAP,
        instant,
        instant,
        1,
        blocked_by=blocker.run,
        detail=f"run {short(blocker.run)} {what}",
    )


def _why_missed(job: Job, made_up: int, made_up_by: Unfinished | None, *, due_now: bool) -> str:
    """Why `catch_up` lets missed instants go. `made_up`: occurrences that run late or wait to; `made_up_by`: the one
    that still waits and runs in their stead."""
    if job.catch_up is CatchUp.NONE:
        return "catch_up: none"
    if job.catch_up is CatchUp.ALL and made_up >= job.catch_up_max:
        return f"more than catch_up_max: {job.catch_up_max}"
    if made_up_by is not None:
        return f"run {short(made_up_by.run)}, which is still waiting, makes up for it"
    if job.catch_up is CatchUp.LATEST and (due_now or made_up):
        return "catch_up: latest, and a newer one " + ("was due" if due_now else "runs")
    return f"older than catch_up_window: {format_duration(job.catch_up_window)}"


def _skip(job: Job, schedule: Schedule, first: datetime, last: datetime, reason: SkipReason, detail: str = "") -> Skip:
    """One skip for all instants of the schedule in `[first, last]`; `first` is one of them."""
    end = schedule.before(last + _TICK)
    assert end is not None
    return Skip(job.name, reason, first, end, schedule.count(first, last), detail=detail)
