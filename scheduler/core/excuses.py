"""Stretches of time in which a job is excused from running: its pauses and its blackouts.

It costs a few microseconds per beginning of a blackout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from operator import attrgetter

from scheduler.core.job import Blackout
from scheduler.core.model import Pause, SkipReason
from scheduler.core.schedule import Schedule
from scheduler.core.value_object import value_object

FOREVER = datetime.max.replace(tzinfo=UTC)
"""The end of what has none."""

_TICK = timedelta(microseconds=1)
_MERGED = 100


@value_object
class Excuse:
    """A stretch `[start, end)` whose instants do not run."""

    start: datetime
    end: datetime
    reason: SkipReason
    detail: str


def excuses(pauses: Iterable[Pause], blackouts: Iterable[Blackout], first: datetime, last: datetime) -> list[Excuse]:
    """Pauses and blackouts that touch `[first, last]`, cut to it, ascending, without overlaps; a pause wins."""
    paused = list(_disjoint(pause_stretches(pauses), first, last))
    black = _disjoint(blackout_stretches(blackouts, first, last), first, last)
    return list(merge(paused, (piece for one in black for piece in _outside(one, paused)), key=_start))


def pause_stretches(pauses: Iterable[Pause]) -> list[Excuse]:
    """Ascending by their start."""
    found = [Excuse(one.start, one.until or FOREVER, SkipReason.PAUSED, _by_whom(one)) for one in pauses]
    return sorted(found, key=_start)


def _by_whom(pause: Pause) -> str:
    """`database move (ana)`."""
    author = pause.author and (f"({pause.author})" if pause.reason else f"by {pause.author}")
    return " ".join(part for part in (pause.reason, author) if part)


def blackout_stretches(blackouts: Iterable[Blackout], first: datetime, last: datetime) -> Iterator[Excuse]:
    """Every stretch that may touch `[first, last]`, ascending by its start; those of several blackouts may overlap."""
    return merge(*(_of(one, first, last) for one in blackouts), key=_start)


def _of(blackout: Blackout, first: datetime, last: datetime) -> Iterator[Excuse]:
    if blackout.schedule is not None and blackout.length is not None:
        yield from _recurring(blackout.schedule, blackout.length, blackout.reason, first, last)
    elif blackout.start is not None and blackout.end is not None:
        yield Excuse(blackout.start, blackout.end, SkipReason.BLACKOUT, blackout.reason)


def _recurring(schedule: Schedule, length: timedelta, reason: str, first: datetime, last: datetime) -> Iterator[Excuse]:
    """One that begins again before it has ended goes on, up to _MERGED times: one that never ends must not keep its
    reader waiting."""
    starts = schedule.between(first - length, last)
    begin = next(starts, None)
    if begin is None:
        return
    end, merged = begin + length, 1
    for start in starts:
        if start > end or merged == _MERGED:
            yield Excuse(begin, end, SkipReason.BLACKOUT, reason)
            begin, merged = start, 0
        end, merged = start + length, merged + 1
    yield Excuse(begin, end, SkipReason.BLACKOUT, reason)


def _disjoint(stretches: Iterable[Excuse], first: datetime, last: datetime) -> Iterator[Excuse]:
    """The parts in `[first, last]`, without overlaps: what began first stays whole."""
    reached = first
    for one in stretches:
        start, end = max(one.start, reached), min(one.end, last + _TICK)
        if start < end:
            yield _part(one, start, end)
            reached = end


def _part(excuse: Excuse, start: datetime, end: datetime) -> Excuse:
    if (start, end) == (excuse.start, excuse.end):
        return excuse
    return Excuse(start, end, excuse.reason, excuse.detail)


def _outside(excuse: Excuse, others: Sequence[Excuse]) -> Iterator[Excuse]:
    """What is left of it outside the others, which are ascending and do not overlap."""
    start = excuse.start
    for other in others:
        if other.end <= start or other.start >= excuse.end:
            continue
        if other.start > start:
            yield _part(excuse, start, other.start)
        start = other.end
    if start < excuse.end:
        yield _part(excuse, start, excuse.end)


_start = attrgetter("start")
