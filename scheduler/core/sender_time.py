"""Instants as senders of events write them: numbers since 1970 in any unit, RFC 3339 and its relatives, HTTP dates."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime

from .model import Json
from .offsets import EPOCH

_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?", re.ASCII)
_ISO = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)? ?(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_HTTP = re.compile(r"[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4} [0-9:]{5,8} \S{1,6}", re.ASCII)
# A number of seconds below a hundred thousand million lies before the year 5138; more are smaller units.
_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))


def sender_instant(value: Json) -> datetime | None:
    """The UTC instant that `value` names, None if it names none (or one outside of the years 1900 to 8999).

    Numbers, also as text, are seconds, milliseconds, microseconds or nanoseconds since 1970, told by their size. A text
    without an offset is UTC. Parts below a microsecond are cut off; a leap second is the second after it; 24:00 is
    the next day.
    """
    try:
        found = _read(value)
    except (ValueError, OverflowError, InvalidOperation):
        return None
    return found if found is not None and _FIRST <= found < _LAST else None


def _read(value: Json) -> datetime | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return _number(value)
    if isinstance(value, float):
        return _number(Decimal(str(value))) if math.isfinite(value) else None
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _number(Decimal(text))
    if _HTTP.fullmatch(text):
        found = parsedate_to_datetime(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    return _iso(text)


def _number(number: Decimal | int) -> datetime | None:
    unit = next((unit for limit, unit in _UNITS if 0 <= number < limit), None)
    return None if unit is None else EPOCH + timedelta(microseconds=int(number * 10**6 // unit))


def _iso(text: str) -> datetime | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if minute > 59 or second > 60 or hour > 24 or (hour == 24 and (minute or second)):
        return None
    micros = int(((match[7] or "") + "000000")[:6])
    wall = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
    return datetime(year, month, day, tzinfo=UTC) + wall - _offset(match[8])


def _offset(text: str | None) -> timedelta:
    if text is None or text[0] not in "+-":
        return timedelta()
    digits = text[1:].replace(":", "")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    if ahead >= timedelta(days=1):
        raise ValueError(text)
    return -ahead if text[0] == "-" else ahead
