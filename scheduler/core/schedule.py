"""Cron expressions and a zone → UTC instants. Pure: no clock, no host zone, the same answer on every node.

What comes from croniter is the expansion of plain fields (`*`, numbers, `a-b`, steps, lists of them) into
numbers; on exactly these it is right. Reading the text, the day rules, `L`, `#`, `H` and everything about
time is done here and in the siblings, because there the libraries differ from cron and from each other.

Rules for the days when the clock changes, as Debian's cron has them:
1. *Wildcard* (the minute or hour field begins with `*`, or six fields): every real second that the wall clock
   matches; nothing in a gap, both passes of a fold.
2. *Fixed-time* (all others): matches in a gap happen once, together, at the first instant after it; a match
   in a fold happens in the first pass only.
3. A jump of more than three hours is a clock that was set: nothing is made up, nothing suppressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from typing import Literal

from croniter import croniter

from scheduler.core.value_object import value_object

from .cron_text import COLUMNS, DAY, MONTH, WEEKDAY, Column, CronText, Field, read
from .errors import ScheduleError
from .offsets import EPOCH, FIRST_SECOND, LAST_SECOND, Piece, instant_of, pieces, start_of_year, year_of
from .timetable import Rule, Timetable
from .zone import TZDATA_VERSION, zone_of

__all__ = ["HORIZON_YEARS", "SCHEDULE_CODE", "TZDATA_VERSION", "DayMatch", "Schedule"]

SCHEDULE_CODE = 1  # raised whenever the instants of some expression may change
HORIZON_YEARS = 200  # dates recur within 40 years; only times that fall into a gap each time can be rarer

DayMatch = Literal["cron", "or", "and"]

_SECOND = timedelta(seconds=1)
_MOST_EXPRESSIONS = 100


@value_object
class Schedule:
    """The union of cron `expressions` in a `zone`, valid once constructed.

    ScheduleError, with field, reason and remedy, for whatever is refused. `hash_name` is what `H` hashes.
    Instants go in as aware datetimes of any zone (naive ones: ValueError) and come out in UTC.
    """

    expressions: tuple[str, ...]
    zone: str
    day_match: DayMatch = "cron"
    hash_name: str = ""

    def __post_init__(self) -> None:
        given: object = self.expressions  # types are checked: this may come from a file or a test
        if not isinstance(given, (tuple, list)) or not all(isinstance(text, str) for text in given):
            raise ScheduleError("expressions must be a list of texts", hint='write ["0 8 * * 1"]')
        object.__setattr__(self, "expressions", tuple(given))
        if not self.expressions:
            raise ScheduleError("a schedule without an expression", hint="write at least one")
        if len(self.expressions) > _MOST_EXPRESSIONS:
            raise ScheduleError(
                f"{len(self.expressions)} expressions, at most {_MOST_EXPRESSIONS} are allowed",
                hint="split the job, or merge expressions with lists and ranges",
            )
        if not isinstance(self.day_match, str) or self.day_match not in ("cron", "or", "and"):
            raise ScheduleError(f"day_match {str(self.day_match)[:40]!r} is unknown", hint="write cron, or, and")
        if not isinstance(self.hash_name, str):
            raise ScheduleError("the name that H hashes must be text", hint="give the name of the job")
        if not isinstance(self.zone, str):
            raise ScheduleError("a time zone must be text", hint="write Europe/Berlin")
        zone_of(self.zone)
        _compile(self.expressions, self.day_match, self._hashed)

    def after(self, instant: datetime) -> datetime | None:
        """The first occurrence strictly later; None if there is none within HORIZON_YEARS."""
        return _first_from(self.expressions, self.zone, self.day_match, self._hashed, _floor(instant) + 1)

    def next_two(self, instant: datetime) -> tuple[datetime | None, datetime | None]:
        """The first two occurrences at or after `instant`; None where there is none within HORIZON_YEARS."""
        start = -_floor_of_negative(instant)
        return _two_from(self.expressions, self.zone, self.day_match, self._hashed, start)

    def _from(self, start: int) -> Iterator[datetime]:
        end = start_of_year(min(year_of(_within(start)) + HORIZON_YEARS, 9999))
        return map(instant_of, self._ascending(start, end))

    def before(self, instant: datetime) -> datetime | None:
        """The last occurrence strictly earlier; None if there is none within HORIZON_YEARS."""
        end = -_floor_of_negative(instant)
        start = start_of_year(max(year_of(_within(end)) - HORIZON_YEARS, 2))
        return next(map(instant_of, self._descending(start, end)), None)

    def between(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Yield, lazily and ascending, every occurrence with first <= occurrence <= last."""
        return map(instant_of, self._ascending(*_bounds(first, last)))

    def count(self, first: datetime, last: datetime) -> int:
        """The number of occurrences of `between`, at a cost per day."""
        table = self.timetable
        total = 0
        for piece in self._pieces(*_bounds(first, last)):
            low, high = piece.start + piece.offset, piece.end + piece.offset
            total += table.count(low, high, table.wildcards if piece.repeated else table.everything)
            total += self._made_up(piece)
        return total

    def newest(self, first: datetime, last: datetime, n: int) -> list[datetime]:
        """The last `n` occurrences of `between`, ascending, without walking over the others."""
        if n <= 0:
            return []
        found = [instant_of(second) for second in islice(self._descending(*_bounds(first, last)), n)]
        return found[::-1]

    @property
    def wildcard(self) -> bool:
        """Whether every expression follows the wall clock (rule 1)."""
        return not self.timetable.fixed

    @property
    def texts(self) -> tuple[CronText, ...]:
        """The expressions as read, for whoever explains them."""
        return tuple(read(expression, self.hash_name) for expression in self.expressions)

    @property
    def tzinfo(self) -> tzinfo:
        """The zone, from the tzdata package."""
        return zone_of(self.zone)

    @property
    def timetable(self) -> Timetable:
        """The matches on the wall clock, for whoever explains them."""
        return _compile(self.expressions, self.day_match, self._hashed)

    @property
    def _hashed(self) -> str:
        """The name that `H` hashes, if there may be one: without it all jobs share a timetable."""
        return self.hash_name if any("H" in text or "h" in text for text in self.expressions) else ""

    def _ascending(self, start: int, end: int) -> Iterator[int]:
        table = self.timetable
        for piece in self._pieces(start, end):
            if self._made_up(piece):
                yield piece.start
            mask = table.wildcards if piece.repeated else table.everything
            for second in table.ascending(piece.start + piece.offset, piece.end + piece.offset, mask):
                yield second - piece.offset

    def _descending(self, start: int, end: int) -> Iterator[int]:
        table = self.timetable
        for piece in self._pieces(start, end, backwards=True):
            mask = table.wildcards if piece.repeated else table.everything
            for second in table.descending(piece.start + piece.offset, piece.end + piece.offset, mask):
                yield second - piece.offset
            if self._made_up(piece):
                yield piece.start

    def _made_up(self, piece: Piece) -> bool:
        """Whether fixed-time matches in the gap before `piece` add its first instant, none by itself."""
        if piece.skipped is None:
            return False
        table = self.timetable
        opening = piece.start + piece.offset
        return table.any(*piece.skipped, table.fixed) and not table.any(opening, opening + 1, table.everything)

    def _pieces(self, start: int, end: int, *, backwards: bool = False) -> Iterator[Piece]:
        """The pieces of `[start, end)`, year by year; years without a matching date cost next to nothing."""
        table, zone = self.timetable, self.tzinfo
        start, end = max(start, FIRST_SECOND), min(end, LAST_SECOND + 1)
        if start >= end:
            return
        years = range(year_of(start), year_of(end - 1) + 1)
        for year in reversed(years) if backwards else years:
            # Local dates of a UTC year reach one day into its neighbours.
            if any(table.has_day_in(near) for near in (year, year - 1, year + 1)):
                found = pieces(zone, max(start, start_of_year(year)), min(end, start_of_year(year + 1)))
                yield from reversed(list(found)) if backwards else found


# Jobs that share a schedule are mostly due together, and ask the same.
@lru_cache(maxsize=1024)
def _first_from(expressions: tuple[str, ...], zone: str, day_match: DayMatch, name: str, start: int) -> datetime | None:
    return next(Schedule(expressions, zone, day_match, name)._from(start), None)


@lru_cache(maxsize=1024)
def _two_from(
    expressions: tuple[str, ...], zone: str, day_match: DayMatch, name: str, start: int
) -> tuple[datetime | None, datetime | None]:
    coming = Schedule(expressions, zone, day_match, name)._from(start)
    return next(coming, None), next(coming, None)


@lru_cache(maxsize=16_384)
def _compile(expressions: tuple[str, ...], day_match: DayMatch, hash_name: str) -> Timetable:
    rules = []
    for expression in expressions:
        text = read(expression, hash_name)
        rule = _rule(text, day_match)
        if not rule.ever_comes():
            raise _never(text, rule)
        rules.append(rule)
    return Timetable(tuple(rules))


def _rule(text: CronText, day_match: DayMatch) -> Rule:
    day, weekday = text.columns[3], text.columns[5]
    seconds, minutes, hours, days, months, weekdays = _expand(text.columns)
    either = {
        # `or` is about restricted fields: one that begins with `*` and leaves nothing out restricts nothing.
        "or": not (day.starred and len(days) == 31) and not (weekday.starred and len(weekdays) == 7),
        "and": False,
        "cron": not day.starred and not weekday.starred,
    }[day_match]
    return Rule(
        seconds,
        minutes,
        hours,
        frozenset(days),
        day.last_day,
        frozenset(months),
        frozenset(weekdays),
        weekday.nth_weekdays,
        weekday.last_weekdays,
        both_days=not either,
        wildcard=text.six_fields or text.columns[1].starred or text.columns[2].starred,
    )


def _expand(columns: Sequence[Column]) -> list[tuple[int, ...]]:
    """Return the numbers of each column, by croniter, which sees plain fields only."""
    plain = [column.plain or "*" for column in columns]
    expanded = croniter.expand(" ".join(plain[1:]))[0]
    expanded.insert(0, croniter.expand(f"{plain[0]} * * * *")[0][0])
    return [
        _numbers(field, values) if column.plain else ()
        for field, column, values in zip(COLUMNS, columns, expanded, strict=True)
    ]


def _numbers(field: Field, values: Sequence[object]) -> tuple[int, ...]:
    if "*" in values:
        return tuple(range(field.low, min(field.high, 6) + 1 if field is WEEKDAY else field.high + 1))
    return tuple(sorted({value for value in values if isinstance(value, int)}))


def _never(text: CronText, rule: Rule) -> ScheduleError:
    day, month, weekday = text.columns[3:]
    parts = [f"{DAY.name} `{day.text}`", f"{MONTH.name} `{month.text}`"]
    hint = "choose a day that the month has; L is the last day of any month"
    if rule.both_days and len(rule.weekdays) < 7:
        parts.append(f"{WEEKDAY.name} `{weekday.text}`")
        hint = "day of month and day of week must both match here; day_match: or takes either"
    return ScheduleError(f"{', '.join(parts)} never come together (`{text.text}`)", hint=hint)


def _floor(instant: datetime) -> int:
    return (_utc(instant) - EPOCH) // _SECOND


def _floor_of_negative(instant: datetime) -> int:
    return (EPOCH - _utc(instant)) // _SECOND


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError(f"an instant needs a zone, {instant.isoformat()} has none")
    return instant.astimezone(UTC)


def _bounds(first: datetime, last: datetime) -> tuple[int, int]:
    """The whole seconds `[start, end)` of an inclusive range."""
    return -_floor_of_negative(first), _floor(last) + 1


def _within(second: int) -> int:
    return min(max(second, FIRST_SECOND), LAST_SECOND)
