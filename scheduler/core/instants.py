"""Instants as people type and read them: `2026-11-01T01:30`, `-2h`, `yesterday`; "in 4m", "3d ago".

The only user of pendulum, for reading ISO 8601. Which UTC instant a wall-clock time means is decided here,
because pendulum takes the second pass of a fold.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from .durations import format_duration, parse_duration
from .errors import InvalidInput
from .offsets import EPOCH, pieces
from .zone import zone_of

_EXAMPLES = "write 2026-11-01T01:30, 2026-11-01T01:30Z, `2026-11-01 01:30 America/New_York`, -2h or yesterday"
_FIRST_YEAR, _LAST_YEAR = 1900, 9000
_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}
_SHAPE = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})(?:[Tt ](?P<time>\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)"
    r" ?(?P<offset>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def parse_instant(text: str, *, now: datetime, zone: str = "UTC") -> datetime:
    """Return the UTC instant that `text` names; InvalidInput with examples for anything else.

    1. `now`, `today`, `yesterday`, `tomorrow` (midnight in the zone), each may be followed by a time: `today 14:00`.
    2. `-2h`, `+30m`, `2h ago`, `in 30m`: relative to `now`.
    3. A date, with or without time, with `Z`, an offset, or an IANA zone behind a blank; else in `zone`.

    A wall-clock time that comes twice is the first pass; one that does not exist is the first instant after the gap.
    """
    words = text.strip() if isinstance(text, str) else ""
    if not words or len(words) > 100 or not words.isascii():
        raise InvalidInput(f"{str(text)[:40]!r} is not an instant", hint=_EXAMPLES)
    relative = _relative(words, now)
    if relative is not None:
        return relative
    zone_name = zone
    head, _, tail = words.rpartition(" ")
    if head and re.match(r"[A-Za-z]", tail) and tail not in "Zz":
        words, zone_name = head, tail
    day, _, clock = words.lower().partition(" ")
    if day not in _DAYS and _SHAPE.fullmatch(words) is None:
        # Before the zone is looked at: of `next week` the week is none.
        raise InvalidInput(f"{text[:40]!r} is not an instant", hint=_EXAMPLES)
    tz = zone_of(zone_name)
    if day in _DAYS:
        today = (now.astimezone(tz) + timedelta(days=_DAYS[day])).date().isoformat()
        words = f"{today} {clock}" if clock else today
    shape = _SHAPE.fullmatch(words)
    if shape is None:
        raise InvalidInput(f"{text[:40]!r} is not an instant", hint=_EXAMPLES)
    import pendulum  # takes 50 ms to load, which those who only read instants shall not pay
    from pendulum.parsing.exceptions import ParserError

    try:
        found: object = pendulum.parse(words.replace(" ", "T", 1).replace(" ", "").upper(), exact=True)
    except (ParserError, ValueError):
        raise InvalidInput(f"{text[:40]!r} is not a date and time of the calendar", hint=_EXAMPLES) from None
    assert isinstance(found, date), "the shape was checked"
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise InvalidInput(f"{text[:40]!r}: the year is out of range", hint=f"{_FIRST_YEAR} to {_LAST_YEAR}")
    if shape["offset"] and isinstance(found, datetime):
        return _plain(found) - (found.utcoffset() or timedelta())
    return instant_of_wall(_plain(found).replace(tzinfo=None), tz)


def instant_of_wall(wall: datetime, zone: tzinfo) -> datetime:
    """Return the UTC instant at which the clock of `zone` first shows `wall` (naive, years 3 to 9997).

    If it never does: the first instant after the gap that swallowed it.
    """
    local = (wall.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    for piece in pieces(zone, local - 2 * 86_400, local + 2 * 86_400):
        if local < piece.start + piece.offset:
            return EPOCH + timedelta(seconds=piece.start)
        if local < piece.end + piece.offset:
            return EPOCH + timedelta(seconds=local - piece.offset, microseconds=wall.microsecond)
    raise AssertionError("four days around a wall-clock time contain it, or the gap that swallowed it")


def relative(instant: datetime, *, now: datetime) -> str:
    """Return the distance in words, in its one or two largest units: `in 4m`, `3d ago`, `now` (below a second)."""
    seconds = abs(instant - now) // timedelta(seconds=1)
    if seconds == 0:
        return "now"
    for size, smaller in ((86_400, 3_600), (3_600, 60), (60, 1)):
        if seconds >= size:
            # Two units only while the second one matters: 1h30m, but 12h and 3d.
            seconds -= seconds % (smaller if seconds < 10 * size and size != 60 else size)
            break
    words = format_duration(timedelta(seconds=seconds))
    return f"in {words}" if instant > now else f"{words} ago"


def _relative(words: str, now: datetime) -> datetime | None:
    if words.lower() == "now":
        return now.astimezone(UTC)
    match = re.fullmatch(r"(?:([+-])|in )([0-9][0-9a-z.]*)|([0-9][0-9a-z.]*) ago", words.lower())
    if match is None:
        return None
    length = parse_duration(match[2] or match[3])
    back = match[1] == "-" or match[3] is not None
    try:
        return now.astimezone(UTC) + (-length if back else length)
    except OverflowError:
        raise InvalidInput(f"{words!r} is out of the calendar's range", hint=_EXAMPLES) from None


def _plain(found: date) -> datetime:
    """The numbers of a pendulum object, as if they were UTC."""
    day = datetime(found.year, found.month, found.day, tzinfo=UTC)
    if not isinstance(found, datetime):
        return day
    return day + timedelta(hours=found.hour, minutes=found.minute, seconds=found.second, microseconds=found.microsecond)
