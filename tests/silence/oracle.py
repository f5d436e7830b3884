"""What was a miss, judged after the fact from what the world did: when the job was due, when it was paused, when its
runs began, ended and failed, when no daemon was up. It knows nothing of how the product computes deadlines."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from tests.silence.instants import Timing

GRACE = timedelta(hours=1)
"""The default."""
SHORT = timedelta(minutes=1)
"""A daemon that is away for less is none that was away."""


@dataclass(slots=True)
class Span:
    """A run. `covers` is the instant that it was for, `began` its first start, `ended` None while it has not ended,
    `cut` how often it was cut short."""

    covers: datetime
    began: datetime
    ended: datetime | None = None
    succeeded: bool = False
    cut: int = 0


@dataclass(slots=True)
class Record:
    """All that happened to one job: `timings` with when each was in force from, None for "not in the file"."""

    timings: list[tuple[datetime, Timing | None]] = field(default_factory=list)
    pauses: list[tuple[datetime, datetime]] = field(default_factory=list)
    runs: dict[str, Span] = field(default_factory=dict)


def misses(record: Record, outages: list[tuple[datetime, datetime]], until: datetime) -> list[tuple[datetime, bool]]:
    """The deadlines that were missed up to `until`, one for each stretch without a success; of each whether something
    was in the way before its deadline that was not planted in just that run: a daemon that was away, a run that had
    been cut short or that hung."""
    long = [(down, up) for down, up in outages if up - down > SHORT]
    runs = sorted(record.runs.values(), key=lambda run: run.ended or until + timedelta(days=999))
    found: list[tuple[datetime, bool]] = []
    changes = [*record.timings, (until, None)]
    for (start, timing), (end, _) in pairwise(changes):
        if timing is not None:
            due = _expected(record, timing, start, end)
            found += _of_one(due, runs, long, outages, end)
    return found


def _expected(record: Record, timing: Timing, start: datetime, end: datetime) -> list[datetime]:
    """The instants that count: not those in a pause, and not those at which a younger run was in the way."""
    runs = sorted(record.runs.values(), key=lambda run: run.began)
    ran = {run.covers for run in runs}
    due = []
    for instant in timing.between(start, end):
        if any(begin <= instant < over for begin, over in record.pauses):
            continue
        last = runs[bisect_left(runs, instant, key=lambda run: run.began) - 1 :][:1]
        blockers = [run for run in last if run.began < instant and (run.ended is None or run.ended > instant)]
        if instant not in ran and any(instant < run.began + GRACE for run in blockers):
            continue
        due.append(instant)
    return due


def _of_one(
    due: list[datetime],
    runs: list[Span],
    long: list[tuple[datetime, datetime]],
    outages: list[tuple[datetime, datetime]],
    end: datetime,
) -> list[tuple[datetime, bool]]:
    found = []
    successes = iter([run for run in runs if run.succeeded])
    success = next(successes, None)
    position, missed = 0, False
    while position < len(due):
        instant = due[position]
        deadline = instant + GRACE
        if deadline > end:
            break
        while success is not None and success.covers < instant:
            success = next(successes, None)
        done = success is not None and success.ended is not None and success.ended <= _limit(deadline, runs, long)
        if not done and not missed:
            disturbed = any(down < deadline and up > instant for down, up in outages)
            around = [run for run in runs if run.covers <= deadline and (run.ended or end) >= instant]
            disturbed |= any(run.cut or (run.ended or end) - run.began > GRACE for run in around)
            found.append((deadline, disturbed))
            missed = True
        if success is None or success.ended is None or success.ended > end:
            break
        while position < len(due) and due[position] <= success.covers:
            position += 1
        # It stays missed if what comes next was past its deadline, too, when this one succeeded.
        missed = missed and position < len(due) and due[position] + GRACE <= success.ended
    return found


def _limit(deadline: datetime, runs: list[Span], long: list[tuple[datetime, datetime]]) -> datetime:
    """Until when a success counts: of a deadline that passed while no daemon was up, until what was owed has ended, and
    at most a grace after that."""
    up = max((up for down, up in long if down < deadline <= up), default=None)
    if up is None:
        return deadline
    first = min((run.ended for run in runs if run.ended is not None and run.ended >= up), default=deadline)
    return min(first, up + GRACE) if first >= up else deadline
