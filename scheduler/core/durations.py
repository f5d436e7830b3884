"""Durations as people write them: a number and a unit, `90s`, `15m`, `1h30m`, `2d`."""

from __future__ import annotations

import re
from datetime import timedelta

from .errors import InvalidInput

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LONGEST = timedelta(days=36_500)  # a hundred years: more is a slip of the pen
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[wdhms])")


def parse_duration(text: str) -> timedelta:
    """Return the duration that `text` names, at least zero; units `w d h m s ms`, largest first, each once.

    A bare number, a sign, blanks inside or an unknown unit raise InvalidInput with a hint.
    """
    if not isinstance(text, str):
        raise InvalidInput(f"a duration must be text, not {type(text).__name__}", hint="write 90s or 1h30m")
    shown = text.strip(" \t")[:40]
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", shown):
        raise InvalidInput(f"duration {shown!r} has no unit", hint=f"write {shown}s or {shown}m")
    total = timedelta()
    units = [*_UNITS, "ms"]
    position = 0
    while position < len(shown):
        part = _PART.match(shown, position)
        if part is None or part[2] not in units:
            raise _not_understood(shown)
        units = units[units.index(part[2]) + 1 :]
        seconds = float(part[1]) * (0.001 if part[2] == "ms" else _UNITS[part[2]])
        if seconds > _LONGEST.total_seconds():
            raise InvalidInput(f"duration {shown!r} exceeds a hundred years", hint="write a shorter one")
        total += timedelta(seconds=seconds)
        position = part.end()
    if not shown or len(text.strip(" \t")) > 40:
        raise _not_understood(shown)
    return total


def format_duration(duration: timedelta) -> str:
    """Return the shortest text that `parse_duration` reads back, as `1h30m`; zero is `0s`, weeks are days.

    Parts below a millisecond are dropped; a negative duration begins with `-`.
    """
    sign, milliseconds = "", duration // timedelta(milliseconds=1)
    if duration < timedelta():
        sign, milliseconds = "-", -duration // timedelta(milliseconds=1)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts) if parts else "0s"


def _not_understood(shown: str) -> InvalidInput:
    return InvalidInput(f"duration {shown!r} is not understood", hint="write a number and a unit: 90s, 15m, 1h30m, 2d")
