"""What to tell somebody whose cron expression contains other dialects' signs, or what nobody understands."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .errors import ScheduleError

# What other dialects write, so that the answer names the remedy.
_FOREIGN = (
    (r"R(\(.*\))?(/.*)?", "a random value differs on every node and after every start", "write H (hash)"),
    (r"[0-9]*L?W|WL", "{item} (nearest working day) is not supported", "choose a day, or MON-FRI"),
    (r"[0-9]+-L|L-[0-9]+/.*", "{item} is not known", "L stands alone or in a list, as 15,L"),
    (r"L-[0-9]+", "{item} (days before the last) is not supported", "write L, or a day of the month"),
    (r"L[0-7]|L[A-Z]{3}", "{item} is not known", "the last Friday is written 5L, in the day-of-week field"),
    (r"L", "L means the last day only in the day-of-month field", "the last Friday of a month is written 5L"),
    (r"[0-9]+L|[A-Z]{3}L", "{item} belongs into the day-of-week field", "the last day of a month is L"),
    (r".*#.*", "{item} belongs alone into the day-of-week field", "the second Friday is written 5#2"),
    (r"H.*", "{item} is not understood", "write H, H/15, H(0-29) or H(0-29)/10"),
    (r"[0-9]*~[0-9]*", "a random value differs on every node and after every start", "write H, as H(0-29)"),
    (r"\?.*", "`?` must stand alone", "write `*`"),
)

_INTERVAL = re.compile(r"(@?every\b\s*)?([0-9]{1,6})?\s*(s|m|h|d|sec|min|hr|second|minute|hour|day)s?", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_STEPS = (
    (1, 60, "* * * * * *", "*/{} * * * * *"),
    (60, 60, "* * * * *", "*/{} * * * *"),
    (3600, 24, "0 * * * *", "0 */{} * * *"),
    (86_400, 1, "0 0 * * *", ""),
)
"""Of each unit: its seconds, how many make the next one, the expression for each of them, and for every nth."""


def reason_and_hint(item: str, field: str, low: int, high: int, words: Mapping[str, int]) -> tuple[str, str]:
    """Return why `item` (upper case) is refused in that field, and what to write instead."""
    for pattern, reason, hint in _FOREIGN:
        if re.fullmatch(pattern, item):
            return reason.format(item=item[:40]), hint
    if re.fullmatch(r"[A-Z]{4,}", item) and item[:3] in words:
        return f"{item[:40]} is not known", f"write the first three letters: {item[:3]}"
    names = f", names {' '.join(words)}" if words else ""
    return (
        f"{item[:40]} is not understood",
        f"the {field} takes numbers {low} to {high}{names}; ranges a-b, steps */n, lists a,b",
    )


def refused_character(character: str) -> ScheduleError:
    """Return the refusal of a character that no cron expression contains."""
    if character == "\n":
        return ScheduleError("a line break inside a cron expression", hint="write a list, one expression each")
    if character.isspace():
        return ScheduleError(
            f"a blank that is not ASCII (U+{ord(character):04X}) in the cron expression",
            hint="separate fields with ordinary blanks or tabs",
        )
    return ScheduleError(
        f"a character that is not printable ASCII (U+{ord(character):04X}) in the cron expression",
        hint="type the digits 0-9 and signs on an English keyboard",
    )


def refused_interval(text: str) -> ScheduleError | None:
    """The refusal of what is an interval (`every 5m`, `@every 2h`, `30 min`), with the expression that is meant."""
    found = _INTERVAL.fullmatch(text)
    if found is None and not text.lower().startswith("@every"):
        return None
    hint = "write steps, as `*/5 * * * *` for every 5 minutes or `0 */2 * * *` for every 2 hours"
    if found is not None:
        seconds = int(found[2] or 1) * _SECONDS[found[3][0].lower()]
        meant = _steps(seconds)
        even = "choose one that divides the minute, the hour or the day"
        hint = f"write `{meant}`" if meant else f"{even}, as `*/15 * * * *` or `0 */2 * * *`"
    return ScheduleError(f"{text[:40]} is not supported: an interval has no fixed instants", hint=hint)


def _steps(seconds: int) -> str | None:
    """The expression whose instants are always so far apart."""
    for unit, next_one, each, every in _STEPS:
        count, rest = divmod(seconds, unit)
        if not rest and 0 < count <= next_one and next_one % count == 0 and (count < next_one or next_one == 1):
            return each if count == 1 else every.format(count)
    return None
