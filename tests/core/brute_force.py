"""Cron by brute force: walk over real time second by second or minute by minute and look at the wall clock.

Shares no code with scheduler.core: own field parser, own day rule, own rule for changes of the clock (by the
`fold` of zoneinfo), own walk. Slow and simple on purpose. Zones are read from the tzdata package, as the product
does, because the host's database may be another version.
"""

from __future__ import annotations

import calendar
import struct
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

NAMES = {
    "month": ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    "weekday": ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
}
RANGES = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 31),
    "month": (1, 12),
    "weekday": (0, 7),
}


@lru_cache(maxsize=700)
def zone(name: str) -> tzinfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def explicit_transitions(name: str) -> list[tuple[int, int, int]]:
    """(UTC second, offset before, offset after) as written in the TZif file, without its rule for later years."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    *_, times, types, chars = struct.unpack(">6l", data[20:44])
    isutc, isstd, leap = struct.unpack(">3l", data[20:32])
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isutc
    isutc, isstd, leap, times, types, chars = struct.unpack(">6l", data[second + 20 : second + 44])
    base = second + 44
    at = struct.unpack(f">{times}q", data[base : base + 8 * times])
    which = data[base + 8 * times : base + 9 * times]
    table = base + 9 * times
    offsets = [struct.unpack(">l", data[table + 6 * i : table + 6 * i + 4])[0] for i in range(types)]
    result, before = [], offsets[0]
    for moment, kind in zip(at, which, strict=True):
        if offsets[kind] != before:
            result.append((moment, before, offsets[kind]))
        before = offsets[kind]
    return result


def number(word: str, kind: str) -> int:
    if word in NAMES.get(kind, []):
        return NAMES[kind].index(word) + (kind == "month")
    return int(word)


def field(text: str, kind: str) -> set[int]:
    low, high = RANGES[kind]
    top = 6 if kind == "weekday" else high
    values: set[int] = set()
    for item in text.upper().split(","):
        if "#" in item or (item.endswith("L") and item != "JUL"):
            continue
        body, _, step = item.partition("/")
        if body in ("*", "?"):
            values.update(range(low, top + 1)[:: int(step or 1)])
            continue
        first, _, last = body.partition("-")
        a = number(first, kind)
        b = number(last, kind) if last else (high if step else a)
        if kind == "weekday" and a == 7 and b < 7:
            a = 0
        walk = [a]
        while walk[-1] != b:
            following = walk[-1] + 1
            if following > high or (kind == "weekday" and following == 7 and b != 7):
                following = low
            walk.append(following)
        values.update(v % 7 if kind == "weekday" else v for v in walk[:: int(step or 1)])
    return values


class Expression:
    """One cron expression; `matches(local)` looks at naive wall-clock time."""

    def __init__(self, text: str, day_match: str = "cron") -> None:
        parts = text.split()
        self.six = len(parts) == 6
        if not self.six:
            parts = ["0", *parts]
        self.parts = parts
        self.sets = [field(part, kind) for part, kind in zip(parts, RANGES, strict=True)]
        self.fixed = not self.six and parts[1][0] != "*" and parts[2][0] != "*"
        self.day_match = day_match

    def matches(self, local: datetime) -> bool:
        second, minute, hour, _, month, _ = self.sets
        return (
            local.second in second
            and local.minute in minute
            and local.hour in hour
            and local.month in month
            and self.day_matches(local)
        )

    def day_matches(self, local: datetime) -> bool:
        day_text, weekday_text = self.parts[3].upper(), self.parts[5].upper()
        last = calendar.monthrange(local.year, local.month)[1]
        by_day = local.day in self.sets[3] or ("L" in day_text.split(",") and local.day == last)
        weekday = local.isoweekday() % 7
        by_weekday = weekday in self.sets[5]
        for item in weekday_text.split(","):
            if "#" in item:
                name, _, nth = item.partition("#")
                if number(name, "weekday") % 7 == weekday and (local.day - 1) // 7 + 1 == int(nth):
                    by_weekday = True
            elif item.endswith("L"):
                by_weekday |= number(item[:-1], "weekday") % 7 == weekday and local.day + 7 > last
        stars = [day_text[0] in "*?", weekday_text[0] in "*?"]
        if self.day_match == "and":
            return by_day and by_weekday
        if self.day_match == "or":
            free = [stars[0] and len(self.sets[3]) == 31, stars[1] and len(self.sets[5]) == 7]
            return by_day and by_weekday if any(free) else by_day or by_weekday
        return by_day and by_weekday if any(stars) else by_day or by_weekday


def occurrences(
    texts: list[str], zone_name: str, first: datetime, last: datetime, day_match: str = "cron"
) -> list[datetime]:
    """All occurrences with first <= occurrence <= last, both whole seconds in UTC."""
    tz = zone(zone_name)
    found: set[datetime] = set()
    for text in texts:
        expression = Expression(text, day_match)
        step = timedelta(seconds=1) if expression.six else timedelta(minutes=1)
        moment = first if expression.six else first.replace(second=0, microsecond=0)
        before = (moment - step).astimezone(tz)
        while moment <= last:
            local = moment.astimezone(tz)
            wall = local.replace(tzinfo=None)
            jump = local.utcoffset() - before.utcoffset()  # type: ignore[operator]
            if expression.fixed and timedelta() < jump <= timedelta(hours=3):
                skipped = wall - jump
                while skipped < wall:
                    if expression.matches(skipped):
                        found.add(moment)
                    skipped += step
            if expression.matches(wall) and not (expression.fixed and _second_pass(local, tz)):
                found.add(moment)
            before = local
            moment += step
    return sorted(moment for moment in found if first <= moment <= last)


def _second_pass(local: datetime, tz: tzinfo) -> bool:
    """Whether this wall-clock time was there before, by a change of the clock of three hours or less."""
    if not local.fold:
        return False
    earlier = local.replace(fold=0)
    return local.astimezone(UTC) - earlier.astimezone(UTC) <= timedelta(hours=3)
