"""Instants as schedctl shows and reads them: absolute with the zone, and relative."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo

from scheduler.core.durations import format_duration
from scheduler.core.errors import InvalidInput
from scheduler.core.instants import parse_instant, relative
from scheduler.core.zone import zone_of

_UTC = frozenset({"Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal", "UCT", "Zulu", "Universal", "Etc/GMT", "GMT"})
CLOCKS_DIFFER = 5.0
"""Seconds between the daemon's clock and this machine's that are worth a word."""
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def local_zone(environ: dict[str, str] | None = None) -> str:
    """The IANA name of this machine's zone, UTC if it has none that can be named."""
    name = (os.environ if environ is None else environ).get("TZ", "").lstrip(":")
    if not name:
        try:
            _, _, name = os.readlink("/etc/localtime").rpartition("zoneinfo/")
        except OSError:
            return "UTC"
    if name in _UTC or _zone(name) is None:
        return "UTC"
    return name


def zone_or_utc(name: str | None) -> tuple[tzinfo, str]:
    """The zone of that name; UTC if there is none (a newer daemon may know zones that this program does not)."""
    zone = _zone(name) if name else None
    return (zone, name) if zone is not None and name else (UTC, "UTC")


def read(text: str | None) -> datetime | None:
    """An instant out of the daemon's JSON."""
    return None if text is None else _read(text)


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def absolute(
    instant: datetime,
    zone_name: str | None,
    now: datetime,
    *,
    with_zone: bool = True,
    seconds: bool = False,
    dated: bool = False,
) -> str:
    """`Mon 08:00` within six days of now, else `Mon 2026-12-07 08:00` (or if `dated`); seconds where there are any,
    or if asked for; then the zone."""
    zone, name = zone_or_utc(zone_name)
    local = instant.astimezone(zone)
    clock = f"{local:%H:%M:%S}" if seconds or local.second or local.microsecond else f"{local:%H:%M}"
    day = _WEEKDAYS[local.weekday()]
    if dated or not _near(instant, now):
        day += f" {local:%Y-%m-%d}"
    return f"{day} {clock} {name}" if with_zone else f"{day} {clock}"


def _near(instant: datetime, now: datetime) -> bool:
    """Whether the weekday alone tells the day."""
    return abs(instant - now) <= timedelta(days=6)


def at(text: str, zone_name: str | None, now: datetime, *, with_zone: bool = True) -> str:
    """`absolute` of an instant out of the daemon's JSON."""
    return absolute(_read(text), zone_name, now, with_zone=with_zone)


def narrow_column(texts: Iterable[str | None], zone_name: str | None, now: datetime) -> list[str]:
    """Instants below each other in a table that has little room: `Mon 08:00:30` within six days of now, with seconds if
    one of them needs them; those further away are `2026-12-07 08:00`. `-` for none."""
    instants = [read(text) for text in texts]
    near = [instant for instant in instants if instant is not None and _near(instant, now)]
    seconds = any(instant.second or instant.microsecond for instant in near)
    zone, _ = zone_or_utc(zone_name)
    return [
        "-"
        if instant is None
        else absolute(instant, zone_name, now, with_zone=False, seconds=seconds)
        if _near(instant, now)
        else f"{instant.astimezone(zone):%Y-%m-%d %H:%M}"
        for instant in instants
    ]


def column(texts: Iterable[str | None], zone_name: str | None, now: datetime) -> list[str]:
    """Instants below each other: all with seconds, and all with dates, if one of them needs them. Without the zone,
    which the title names; `-` for none."""
    instants = [read(text) for text in texts]
    known = [instant for instant in instants if instant is not None]
    seconds = any(instant.second or instant.microsecond for instant in known)
    dated = not all(_near(instant, now) for instant in known)
    return [
        "-" if instant is None else absolute(instant, zone_name, now, with_zone=False, seconds=seconds, dated=dated)
        for instant in instants
    ]


def span(first: str, last: str, zone_name: str | None, now: datetime) -> str:
    """`Mon 02:00 to 02:11`: the day of the end only if it is another one."""
    start, end = (at(one, zone_name, now, with_zone=False) for one in (first, last))
    same = start.rpartition(" ")[0] == end.rpartition(" ")[0]
    return f"{start} to {end.rpartition(' ')[2] if same else end}"


def both(text: str | None, zone_name: str | None, now: datetime) -> str:
    """`Mon 08:00 Asia/Shanghai (in 16h)`; `-` for no instant."""
    instant = read(text)
    if instant is None:
        return "-"
    return f"{absolute(instant, zone_name, now)} ({relative(instant, now=now)})"


def ago(text: str | None, now: datetime) -> str:
    instant = read(text)
    return "-" if instant is None else relative(instant, now=now)


def clock_note(theirs: str | None, ours: datetime) -> str | None:
    """What to say when the daemon's clock and this machine's differ: then `ago` and `in` are not what they seem."""
    instant = read(theirs)
    ahead = 0.0 if instant is None else (instant - ours).total_seconds()
    if abs(ahead) < CLOCKS_DIFFER:
        return None
    word = "ahead of" if ahead > 0 else "behind"
    return f"the daemon's clock is {took(abs(ahead))} {word} this machine's, by which `ago` and `in` are counted here"


def took(seconds: float | None) -> str:
    """A duration for people: `0.8s`, `12s`, `3m12s`, `2h5m`."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f}s" if seconds >= 0.05 or seconds == 0 else f"{seconds * 1000:.0f}ms"
    length = timedelta(seconds=round(seconds))
    if length >= timedelta(hours=1):
        length -= length % timedelta(minutes=1)
    return format_duration(length)


def typed(text: str, now: datetime, zone: str) -> datetime:
    """What a person typed as an instant; InvalidInput with examples."""
    return parse_instant(text, now=now, zone=zone)


def typed_past(text: str, now: datetime, zone: str) -> datetime:
    """Like `typed`, but a bare duration means so long ago: `--since 24h`."""
    try:
        return parse_instant(f"-{text}", now=now, zone=zone)
    except InvalidInput:
        return parse_instant(text, now=now, zone=zone)


def _zone(name: str) -> tzinfo | None:
    try:
        return zone_of(name)
    except InvalidInput:
        return None
