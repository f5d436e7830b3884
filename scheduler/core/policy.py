"""What becomes of a job's owed instants: the pure judgement of the planner.

Every instant in `[next_due_at, now]` ends in exactly one entry: a run, or a skip with its reason. The cost grows with
the number of entries and of days, not of instants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.core.ids import short
from scheduler.core.model import Blackout, CatchUp, Cause, Job, Overlap, Pause, Skip, SkipReason, Status
from scheduler.core.ports import Due, Unfinished
from scheduler.core.schedule import Schedule

LATE = timedelta(minutes=1)
"""From this lateness on an instant is missed, and `catch_up` decides about it; before it, it is merely late."""

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    instant: datetime
    cause: Cause


@dataclass(frozen=True, slots=True)
class Plan:
    """`entries` are in the order of their instants. `cancel`: unfinished occurrences to replace. `give_up`: occurrences
    that waited for another job's lock until this one came; they become SKIPPED(lock) first."""

    entries: tuple[PlannedRun | Skip, ...]
    next_due_at: datetime | None
    cancel: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Excuse:
    """A stretch `[start, end)` whose instants do not run."""

    start: datetime
    end: datetime
    reason: SkipReason
    detail: str


def excuses(pauses: Iterable[Pause], blackouts: Iterable[Blackout], first: datetime, last: datetime) -> list[Excuse]:
    """Pauses and blackouts that touch `[first, last]`, cut to it, ascending, without overlaps; a pause wins."""
    paused = [Excuse(pause.start, pause.until or last + _TICK, SkipReason.PAUSED, pause.reason) for pause in pauses]
    black = [
        Excuse(start, end, SkipReason.BLACKOUT, blackout.reason)
        for blackout in blackouts
        for start, end in _stretches(blackout, first, last)
    ]
    result: list[Excuse] = []
    for excuse in sorted(paused, key=lambda e: e.start) + sorted(black, key=lambda e: e.start):
        result.extend(_uncovered(excuse, result, first, last + _TICK))
        result.sort(key=lambda e: e.start)
    return result


def _stretches(blackout: Blackout, first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    if blackout.schedule is None or blackout.length is None:
        if blackout.start is not None and blackout.end is not None:
            yield blackout.start, blackout.end
        return
    open_until: tuple[datetime, datetime] | None = None
    for start in blackout.schedule.between(first - blackout.length, last):
        if open_until is not None and start <= open_until[1]:
            open_until = (open_until[0], start + blackout.length)
            continue
        if open_until is not None:
            yield open_until
        open_until = (start, start + blackout.length)
    if open_until is not None:
        yield open_until


def _uncovered(excuse: Excuse, covered: list[Excuse], first: datetime, end: datetime) -> Iterator[Excuse]:
    start = max(excuse.start, first)
    stop = min(excuse.end, end)
    for other in covered:
        if other.end <= start or other.start >= stop:
            continue
        if other.start > start:
            yield Excuse(start, other.start, excuse.reason, excuse.detail)
        start = max(start, other.end)
    if start < stop:
        yield Excuse(start, stop, excuse.reason, excuse.detail)


def plan(job: Job, due: Due, now: datetime) -> Plan:
    """Judges all instants of `job` in `[due.state.next_due_at, now]`.

    1. Inside a pause or blackout: SKIPPED with that reason.
    2. The newest of the rest, less than a minute late, is due now and judged by `overlap`.
    3. All others are missed and judged by `catch_up`.
    """
    schedule, first = job.schedule, due.state.next_due_at
    if schedule is None or first is None or first > now:
        return Plan((), first)
    entries: list[PlannedRun | Skip] = []
    open_stretches: list[tuple[datetime, datetime]] = []
    cursor = first
    for excuse in excuses(due.pauses, job.blackouts, first, now):
        open_stretches.append((cursor, excuse.start - _TICK))
        entries.extend(_skip(job, schedule, excuse.start, excuse.end - _TICK, excuse.reason, detail=excuse.detail))
        cursor = excuse.end
    open_stretches.append((cursor, now))
    open_stretches = [(a, b) for a, b in open_stretches if a <= b]

    newest = next((t for a, b in reversed(open_stretches) for t in schedule.newest(a, b, 1)), None)
    cancel: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()
    if newest is not None:
        waiting, others = _split_waiting(due.unfinished)
        give_up = tuple(one.run for one in waiting)
        due_now = now - newest < LATE
        runs = _caught_up(job, schedule, open_stretches, newest, now, due_now=due_now)
        missed_until = runs[0].instant if runs else newest + (timedelta(0) if due_now else _TICK)
        for a, b in open_stretches:
            entries.extend(_skip(job, schedule, a, min(b, missed_until - _TICK), SkipReason.MISSED, detail=""))
        entries.extend(runs)
        if due_now:
            entry, cancel = _judge_overlap(job, newest, others)
            entries.append(entry)
    entries.sort(key=lambda entry: entry.first if isinstance(entry, Skip) else entry.instant)
    return Plan(tuple(entries), schedule.after(now), cancel, give_up)


def _caught_up(
    job: Job,
    schedule: Schedule,
    stretches: list[tuple[datetime, datetime]],
    newest: datetime,
    now: datetime,
    *,
    due_now: bool,
) -> list[PlannedRun]:
    """The missed instants that run, ascending; `newest` is among them only when it is itself missed."""
    horizon = now - job.catch_up_window
    if job.catch_up is CatchUp.NONE or (job.catch_up is CatchUp.LATEST and due_now):
        return []
    if job.catch_up is CatchUp.LATEST:
        return [PlannedRun(newest, Cause.CATCH_UP)] if newest >= horizon else []
    wanted = job.catch_up_max
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


def _judge_overlap(
    job: Job, instant: datetime, unfinished: list[Unfinished]
) -> tuple[PlannedRun | Skip, tuple[str, ...]]:
    """The entry of an occurrence that is due now, and the runs to cancel for it."""
    run = PlannedRun(instant, Cause.SCHEDULE)
    if job.overlap is Overlap.SKIP and unfinished:
        return _overlap_skip(job, instant, unfinished[0]), ()
    if job.overlap is Overlap.QUEUE:
        in_line = [
            one
            for one in unfinished
            if one.status is Status.PENDING and one.attempt == 0 and one.cause in (Cause.SCHEDULE, Cause.CATCH_UP)
        ]
        if in_line:
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


def _skip(
    job: Job, schedule: Schedule, first: datetime, last: datetime, reason: SkipReason, *, detail: str
) -> Iterator[Skip]:
    """One skip for all instants of the schedule in `[first, last]`, none if there are none."""
    if first > last:
        return
    count = schedule.count(first, last)
    if count:
        start = schedule.after(first - _TICK)
        end = schedule.before(last + _TICK)
        assert start is not None
        assert end is not None
        yield Skip(job.name, reason, start, end, count, detail=detail)
