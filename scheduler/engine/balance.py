"""The balance of one job: what its schedule versions expected against what the ledger has."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from scheduler.core.commands import JobAudit
from scheduler.core.model import ScheduleVersion, Skip
from scheduler.core.ports import Transaction
from scheduler.core.schedule import SCHEDULE_CODE, TZDATA_VERSION, Schedule
from scheduler.core.stamp import to_text
from scheduler.core.value_object import value_object
from scheduler.engine.swap import schedule_of

NAMED = 100
"""So many unaccounted instants are listed by name; all are counted."""

_TICK = timedelta(microseconds=1)


@value_object
class Gap:
    """`count` instants that follow one another in the schedule and have no entry."""

    first: datetime
    last: datetime
    count: int


@dataclass(slots=True)
class _Sum:
    expected: int = 0
    ran: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    gaps: list[Gap] = field(default_factory=list)
    named: list[datetime] = field(default_factory=list)
    surplus: list[datetime] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def balance(tx: Transaction, job: str, since: datetime, until: datetime) -> tuple[JobAudit, list[Gap]]:
    """Of every instant in `[since, until]` that must be accounted for; and where entries are missing, whole."""
    state = tx.jobs.states([job]).get(job)
    pruned = state.pruned_before if state is not None else None
    total = _Sum()
    for version in tx.jobs.versions(since, [job]):
        first = max(since, version.valid_from + _TICK, pruned or since)
        last = min(until, version.valid_to or until)
        if first > last or version.elsewhere:
            continue
        if (version.spec["tzdata"], version.spec["code"]) != (TZDATA_VERSION, SCHEDULE_CODE):
            total.unknown.append(_not_recomputable(version, first, last))
        else:
            _add(total, tx, job, schedule_of(version.spec), first, last)
    told = JobAudit(
        job,
        total.expected,
        total.ran,
        dict(total.skipped),
        tuple(total.named),
        sum(gap.count for gap in total.gaps),
        tuple(total.surplus[:NAMED]),
        tuple(total.unknown),
    )
    return told, total.gaps


def _not_recomputable(version: ScheduleVersion, first: datetime, last: datetime) -> str:
    return (
        f"{to_text(first)} to {to_text(last)}: planned with tzdata {version.spec['tzdata']}, "
        f"schedule code {version.spec['code']}; this release has {TZDATA_VERSION}, {SCHEDULE_CODE}"
    )


def _add(total: _Sum, tx: Transaction, job: str, schedule: Schedule, first: datetime, last: datetime) -> None:
    runs, skips = tx.ledger.entries(job, first, last)
    total.expected += schedule.count(first, last)
    covered = first
    for skip in skips:
        if first <= skip.first and skip.last <= last and schedule.count(skip.first, skip.last) != skip.count:
            total.surplus.append(skip.first)
        if skip.first < covered:
            total.surplus.extend(
                islice(schedule.between(max(skip.first, first), min(skip.last, covered - _TICK)), NAMED)
            )
        a, b = max(skip.first, covered), min(skip.last, last)
        if a > b:
            continue
        covered = b + _TICK
        twice = runs[bisect_left(runs, a) : bisect_right(runs, b)]
        total.skipped[str(skip.reason)] += schedule.count(a, b) - len(twice)
        total.ran += len(twice)
        total.surplus.extend(twice)
    for a, b in _between(skips, first, last):
        here = runs[bisect_left(runs, a) : bisect_right(runs, b)]
        gaps, extra = _compare(schedule, here, a, b)
        total.ran += len(here) - len(extra)
        total.gaps.extend(gaps)
        for gap in gaps:
            total.named.extend(islice(schedule.between(gap.first, gap.last), NAMED - len(total.named)))
        total.surplus.extend(extra)


def _compare(
    schedule: Schedule, runs: list[datetime], first: datetime, last: datetime
) -> tuple[list[Gap], list[datetime]]:
    """Where instants of `[first, last]` have no run, and runs at instants that the schedule does not have."""
    if not runs:
        count = schedule.count(first, last)
        if not count:
            return [], []
        start, end = schedule.after(first - _TICK), schedule.before(last + _TICK)
        assert start is not None
        assert end is not None
        return [Gap(start, end, count)], []
    extra = set(runs)
    gaps: list[Gap] = []
    follows = False
    for instant in schedule.between(first, last):
        if instant in extra:
            extra.remove(instant)
            follows = False
        elif follows:
            gaps[-1] = Gap(gaps[-1].first, instant, gaps[-1].count + 1)
        else:
            gaps.append(Gap(instant, instant, 1))
            follows = True
    return gaps, sorted(extra)


def _between(skips: list[Skip], first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The closed stretches of `[first, last]` outside the skips."""
    cursor = first
    for skip in skips:
        if skip.first > cursor:
            yield cursor, min(skip.first - _TICK, last)
        cursor = max(cursor, skip.last + _TICK)
    if cursor <= last:
        yield cursor, last
