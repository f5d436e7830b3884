"""How the wall clock of a zone runs against UTC, as pieces of constant offset.

All numbers are whole seconds: UTC since 1970-01-01T00:00:00Z, local wall clock as if it were UTC. The wall
clock of a zone is never computed with as datetimes, whose arithmetic ignores folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from scheduler.core.value_object import value_object

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400
FIRST_SECOND = (datetime(2, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
LAST_SECOND = (datetime(9999, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1) - 1

# A larger jump is "the clock was set" (a date line, Pacific/Apia 2011-12-30), as in cron: nothing is made up
# for what it skipped, nothing suppressed that it repeats.
CLOCK_SET = 3 * 3_600

# Between two looks a zone may change its offset once. The shortest time between two changes, of any zone, is a
# week (America/Noronha in October 2000).
LOOK = 3 * DAY


@value_object
class Transition:
    """From `at` (UTC) on the offset is `after` instead of `before`."""

    at: int
    before: int
    after: int


@value_object
class Piece:
    """UTC seconds `[start, end)` with one offset.

    `repeated`: this stretch of the wall clock was there before (second pass of a fold).
    `skipped`: wall-clock seconds `[from, to)` that the clock jumped over at `start` (a gap), if any.
    """

    start: int
    end: int
    offset: int
    repeated: bool = False
    skipped: tuple[int, int] | None = None


def pieces(zone: tzinfo, start: int, end: int) -> Iterator[Piece]:
    """Yield the pieces that cover UTC seconds `[start, end)`, ascending, without holes or overlap."""
    if zone is UTC:
        if start < end:
            yield Piece(start, end, 0)
        return
    position = max(start - 2 * DAY, FIRST_SECOND)  # a fold in progress at `start` must be seen
    offset = _offset_at(zone, position)
    furthest = position + offset  # the latest wall-clock second shown so far
    skipped: tuple[int, int] | None = None
    for change in [*transitions(zone, position + 1, end), Transition(end, 0, 0)]:
        fresh = min(max(furthest - offset, position), change.at)
        for piece in (
            Piece(position, fresh, offset, repeated=True),
            Piece(fresh, change.at, offset, skipped=skipped),
        ):
            clipped = _clip(piece, start, end)
            if clipped is not None:
                yield clipped
        furthest = max(furthest, change.at + offset)
        skipped = None
        position, offset = change.at, change.after
        if abs(change.after - change.before) > CLOCK_SET:
            furthest = position + offset
        elif position + offset > furthest:
            skipped = (furthest, position + offset)
            furthest = position + offset


def _clip(piece: Piece, start: int, end: int) -> Piece | None:
    if piece.start >= start and piece.end <= end:
        return piece if piece.start < piece.end else None
    first, last = max(piece.start, start), min(piece.end, end)
    if first >= last:
        return None
    skipped = piece.skipped if first == piece.start else None
    return Piece(first, last, piece.offset, piece.repeated, skipped)


def transitions(zone: tzinfo, start: int, end: int) -> list[Transition]:
    """Return the changes of offset at UTC seconds `[start, end)`, ascending."""
    if zone is UTC or start >= end:
        return []
    first, last = year_of(start), year_of(end - 1)
    found = (change for year in range(first, last + 1) for change in _transitions_of_year(zone, year))
    return [change for change in found if start <= change.at < end]


@lru_cache(maxsize=16_384)
def _transitions_of_year(zone: tzinfo, year: int) -> tuple[Transition, ...]:
    start, end = start_of_year(year), start_of_year(year + 1)
    changes = []
    left, before = start - 1, _offset_at(zone, start - 1)
    while left < end - 1:
        right = min(left + LOOK, end - 1)
        after = _offset_at(zone, right)
        if after != before:
            changes.append(Transition(_first_with_other_offset(zone, left, right, before), before, after))
        left, before = right, after
    return tuple(changes)


def _first_with_other_offset(zone: tzinfo, left: int, right: int, offset: int) -> int:
    while right - left > 1:
        middle = (left + right) // 2
        if _offset_at(zone, middle) == offset:
            left = middle
        else:
            right = middle
    return right


def _offset_at(zone: tzinfo, second: int) -> int:
    # By the two wall clocks, not utcoffset(): that depends on `fold`, which subclasses of datetime may lose.
    utc = instant_of(second)
    return (utc.astimezone(zone).replace(tzinfo=None) - utc.replace(tzinfo=None)) // timedelta(seconds=1)


def instant_of(second: int) -> datetime:
    """Return the aware UTC datetime of a second since 1970."""
    return EPOCH + timedelta(seconds=second)


@lru_cache(maxsize=16_384)
def start_of_year(year: int) -> int:
    """Return the UTC second at which a year begins."""
    return (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)


def year_of(second: int) -> int:
    """Return the UTC year of a second since 1970."""
    return instant_of(second).year
