"""Time zones by their IANA name, from the `tzdata` package that ships with the release.

The host's own zone database is never read: two nodes with the same release agree on every instant. UTC works
without any database.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from importlib import import_module, resources
from zoneinfo import ZoneInfo

from .errors import ScheduleError

UTC_NAMES = frozenset({"UTC", "Etc/UTC"})

# Names that the database has, but that say less than people think: no place, or no meaning for a schedule.
_NO_ZONES = frozenset({"Factory", "localtime", "posixrules", "leapseconds"})
_ABBREVIATIONS = frozenset({"EST", "MST", "HST", "CET", "MET", "EET", "WET"})


def _version() -> str:
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return "none"


TZDATA_VERSION: str = _version()


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """All names that a schedule may use; only UTC if the `tzdata` package is not installed."""
    try:
        names = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
    except (ImportError, OSError):
        return UTC_NAMES
    return frozenset(names) - _NO_ZONES - _ABBREVIATIONS | UTC_NAMES


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """Return the zone of that exact name; anything else is refused with what was probably meant."""
    if name in UTC_NAMES:
        return UTC
    if name in zone_names():
        with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            return ZoneInfo.from_file(file, key=name)
    if TZDATA_VERSION == "none":
        raise ScheduleError(
            f"time zone {name[:60]!r} cannot be looked up: there is no zone database",
            hint="install tzdata: pip install tzdata",
        )
    from .zone_hints import hint_for  # only mistakes need the tables

    raise ScheduleError(f"unknown time zone {name[:60]!r}", hint=hint_for(name, zone_names()))
