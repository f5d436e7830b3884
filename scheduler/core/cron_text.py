"""Cron expressions as people write them, read strictly and field by field.

`read(text, hash_name)` guarantees that what it returns is meaningful: every value lies in its field's range,
ranges that wrap or are equal are written out, names are numbers, Sunday is 0, `H` is a number that depends
only on the job's name. Whatever is not understood raises ScheduleError with the field, the reason and a
remedy; nothing is guessed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import field

from scheduler.core.value_object import value_object

from .cron_hints import reason_and_hint, refused_character, refused_interval
from .errors import ScheduleError

MAX_LENGTH = 256  # longer than any sensible line; keeps hostile input and log lines small

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@value_object
class Field:
    """One column: its name in messages, its lowest and highest number, and the words allowed for numbers."""

    name: str
    low: int
    high: int
    words: Mapping[str, int] = field(default_factory=dict)


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, {name: number for number, name in enumerate(MONTHS, 1)})
WEEKDAY = Field("day of week", 0, 7, {name: number for number, name in enumerate(WEEKDAYS)})
COLUMNS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@value_object
class Column:
    """One field as read: `plain` is the part that any cron parser reads alike (numbers, `a-b`, steps, `*`;
    empty if there is none), the rest are the days that depend on the month."""

    text: str
    plain: str
    last_day: bool = False
    nth_weekdays: frozenset[tuple[int, int]] = frozenset()
    last_weekdays: frozenset[int] = frozenset()

    @property
    def starred(self) -> bool:
        """Cron looks at the first character only; `?` is Quartz's way to write `*` in a day field."""
        return self.text[0] in "*?"


@value_object
class CronText:
    """One expression: six columns, seconds first (`0` for five fields)."""

    text: str
    six_fields: bool
    columns: tuple[Column, Column, Column, Column, Column, Column]


def read(text: str, hash_name: str = "") -> CronText:
    """Return the columns of an expression of five fields, six fields (seconds first) or an alias."""
    if not isinstance(text, str):
        raise ScheduleError(f"a cron expression must be text, not {type(text).__name__}", hint='quote it: "0 8 * * 1"')
    if len(text) > MAX_LENGTH:
        raise ScheduleError(
            f"cron expression of {len(text)} characters, at most {MAX_LENGTH} are allowed",
            hint="split it into a list of expressions",
        )
    stripped = text.strip(" \t\r\n")
    for character in stripped:
        if character != "\t" and not "!" <= character <= "~" and character != " ":
            raise refused_character(character)
    if not stripped:
        raise ScheduleError(
            "empty cron expression", hint="write five fields: minute hour day-of-month month day-of-week"
        )
    interval = refused_interval(stripped)
    if interval is not None:
        raise interval
    if stripped.startswith("@"):
        stripped = _alias(stripped)
    words = stripped.upper().split()
    comment = next((word for word in words if word.startswith("#")), None)
    if comment is not None:
        raise ScheduleError(
            "a comment inside the cron expression", hint="move the comment (from # on) out of the quotes"
        )
    _check_count(words)
    six_fields = len(words) == 6
    if not six_fields:
        words.insert(0, "0")
    second, minute, hour, day, month, weekday = (
        _column(column, word, hash_name) for column, word in zip(COLUMNS, words, strict=True)
    )
    return CronText(
        " ".join(words if six_fields else words[1:]), six_fields, (second, minute, hour, day, month, weekday)
    )


def _alias(text: str) -> str:
    alias = text.lower()
    if alias in ALIASES:
        return ALIASES[alias]
    if alias.startswith("@reboot"):
        raise ScheduleError("@reboot is not supported: it is not a time", hint="start the command from a systemd unit")
    if len(alias.split()) > 1:
        raise _beside_others()
    raise ScheduleError(f"unknown alias {text[:40]}", hint=f"known are {' '.join(ALIASES)}")


def _beside_others() -> ScheduleError:
    return ScheduleError("an alias beside other fields", hint="write the alias alone, or the five fields")


def _check_count(words: list[str]) -> None:
    count = len(words)
    if any(word.startswith("@") for word in words):
        raise _beside_others()
    if count in (5, 6):
        return
    fields = "minute hour day-of-month month day-of-week"
    if count == 7:
        raise ScheduleError(
            "7 fields, expected 5 or 6: a year field is not supported",
            hint=f"leave the year out: {fields}, with seconds in front if there are six",
        )
    raise ScheduleError(
        f"{count} field{'s' * (count != 1)}, expected 5 ({fields}) or 6 with seconds first",
        hint="write `*` for a field that does not matter",
    )


def _column(column: Field, text: str, hash_name: str) -> Column:
    if text == "?":
        if column not in (DAY, WEEKDAY):
            raise _error(column, text, "`?` is allowed in the day fields only", "write `*`")
        return Column("?", "*")
    plain: list[str] = []
    nth: set[tuple[int, int]] = set()
    last_weekdays: set[int] = set()
    last_day = False
    for item in text.split(","):
        if not item:
            raise _error(column, text, "an item of the list is empty", "remove the comma that is too many")
        if column is DAY and item == "L":
            last_day = True
        elif column is WEEKDAY and (match := re.fullmatch(r"([0-7]|[A-Z]{3})#([0-9]+)", item)):
            nth.add((_number(column, match[1], text) % 7, _ordinal(column, match[2], text)))
        elif column is WEEKDAY and (match := re.fullmatch(r"([0-7]|[A-Z]{3})L", item)):
            last_weekdays.add(_number(column, match[1], text) % 7)
        elif match := re.fullmatch(r"H(?:\(([0-9]+)-([0-9]+)\))?(?:/([0-9]+))?", item):
            plain.append(_hashed(column, text, match, hash_name))
        else:
            plain.append(_plain(column, item, text))
    return Column(text, ",".join(plain), last_day, frozenset(nth), frozenset(last_weekdays))


def _plain(column: Field, item: str, text: str) -> str:
    """`*`, `a`, `a-b`, each with `/n`, in a form on which parsers agree."""
    match = re.fullmatch(r"(\*|[0-9]+|[A-Z]+)(?:-([0-9]+|[A-Z]+))?(?:/([0-9]+))?", item)
    if not match or (match[1] == "*" and match[2] is not None):
        raise _malformed(column, item, text)
    step = 1 if match[3] is None else _step(column, match[3], text)
    if match[1] == "*":
        return "*" if step == 1 else f"*/{step}"
    if "L" in (match[1], match[2]):
        raise _malformed(column, item, text)
    first = _number(column, match[1], text)
    if match[2] is None and match[3] is None:
        return str(_sunday(column, first))
    if match[2] is None:
        if column is WEEKDAY:
            remedy = f"write the range, as {first % 7}-6/{step}"
            raise _error(column, text, f"{item} is read differently by every cron", remedy)
        last = column.high
    else:
        last = _number(column, match[2], text)
    if first < last and not (column is WEEKDAY and last == 7):
        return f"{first}-{last}" if step == 1 else f"{first}-{last}/{step}"
    return ",".join(str(_sunday(column, value)) for value in _walk(column, first, last, step))


def _walk(column: Field, first: int, last: int, step: int) -> list[int]:
    """The values of a range that may run over the end of its field (`22-2`, `FRI-MON`, `28-3`)."""
    if first <= last:
        return list(range(first, last + 1, step))
    if column is WEEKDAY and first == 7:
        return list(range(0, last + 1, step))
    size = 7 if column is WEEKDAY else column.high - column.low + 1
    return [(value - column.low) % size + column.low for value in range(first, last + size + 1, step)]


def _hashed(column: Field, text: str, match: re.Match[str], hash_name: str) -> str:
    """`H`: a value, `H/n`: a first value and every n-th after it; both stable for one name and one field."""
    if not hash_name:
        raise _error(column, text, "H is derived from the name of a job, and there is none", "write a number")
    step = None if match[3] is None else _step(column, match[3], text)
    low, high = column.low, column.high
    if match[1] is not None:
        low, high = (_number(column, bound, text) for bound in (match[1], match[2]))
        if low > high:
            raise _error(column, text, f"H({low}-{high}) runs backwards", "write the lower number first")
    elif column is WEEKDAY:
        high = 6
    elif column is DAY and step is None:
        high = 28  # a day that every month has
    size = high - low + 1
    digest = hashlib.sha256(f"{column.name}\0{hash_name}".encode("utf-8", "surrogatepass")).digest()
    offset = int.from_bytes(digest[:8], "big") % (size if step is None else min(step, size))
    values = [low + offset] if step is None else range(low + offset, high + 1, step)
    return ",".join(str(_sunday(column, value)) for value in values)


def _sunday(column: Field, value: int) -> int:
    return 0 if column is WEEKDAY and value == 7 else value


def _number(column: Field, word: str, text: str) -> int:
    if word in column.words:
        return column.words[word]
    if not word.isdigit():
        raise _malformed(column, word, text)
    value = int(word)
    if not column.low <= value <= column.high:
        raise _error(column, text, f"{word[:20]} is out of range", f"allowed are {column.low} to {column.high}")
    return value


def _step(column: Field, word: str, text: str) -> int:
    step = int(word)
    if step == 0:
        raise _error(column, text, "the step is zero", "write a step of at least 1")
    return min(step, column.high + 1)  # a wider step gives the same single value


def _ordinal(column: Field, word: str, text: str) -> int:
    value = int(word)
    if not 1 <= value <= 5:
        raise _error(column, text, f"there is no {word[:20]}th weekday in a month", "write #1 to #5, or nL")
    return value


def _malformed(column: Field, item: str, text: str) -> ScheduleError:
    return _error(column, text, *reason_and_hint(item, column.name, column.low, column.high, column.words))


def _error(column: Field, text: str, reason: str, hint: str) -> ScheduleError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return ScheduleError(f"{column.name} `{shown}`: {reason}", hint=hint)
