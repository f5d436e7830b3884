"""When a job of the simulated year is due, found without the product: by looking at the wall clock of its zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

ZONES = (
    "America/New_York",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Havana",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Helsinki",
    "Africa/Cairo",
    "Asia/Jerusalem",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Shanghai",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Auckland",
)

QUARTER = timedelta(minutes=15)


@lru_cache
def zone_of(name: str) -> ZoneInfo:
    """Of the release of the zone database that the product ships with, whatever this machine has."""
    place = files("tzdata").joinpath("zoneinfo", *name.split("/"))
    with place.open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


@dataclass(frozen=True, slots=True)
class Timing:
    """Due at `minute` past each of `hours` (None: every hour) on the days for which `weekday` and `day` hold (None:
    any), by the clock of `zone`."""

    zone: str
    minute: int
    hours: tuple[int, ...] | None
    weekday: int | None = None
    day: int | None = None

    @property
    def cron(self) -> str:
        hours = "*" if self.hours is None else ",".join(map(str, self.hours))
        # Sunday is 0 in cron and 6 in Python.
        weekday = "*" if self.weekday is None else str((self.weekday + 1) % 7)
        return f"{self.minute} {hours} {'*' if self.day is None else self.day} * {weekday}"

    def between(self, first: datetime, last: datetime) -> list[datetime]:
        """The instants in `(first, last]`, in UTC."""
        found = self._every_hour(first, last) if self.hours is None else self._by_day(first, last)
        return sorted({instant for instant in found if first < instant <= last})

    def _every_hour(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Every real moment at which the clock shows the minute: all offsets are whole quarters of an hour."""
        zone = zone_of(self.zone)
        moment = first.replace(minute=self.minute % 15, second=0, microsecond=0) - QUARTER
        while moment <= last:
            if moment.astimezone(zone).minute == self.minute:
                yield moment
            moment += QUARTER

    def _by_day(self, first: datetime, last: datetime) -> Iterator[datetime]:
        zone = zone_of(self.zone)
        today = first.astimezone(zone).date() - timedelta(days=1)
        end = last.astimezone(zone).date() + timedelta(days=1)
        while today <= end:
            if self.weekday in (None, today.weekday()) and self.day in (None, today.day):
                for hour in self.hours or ():
                    yield _moment(today, hour, self.minute, zone)
            today += timedelta(days=1)


def _moment(day: date, hour: int, minute: int, zone: ZoneInfo) -> datetime:
    """The first moment at which the clock shows this; if it is set forward over it, the moment at which it is set."""
    wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    moment = wall.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return moment
    before = moment - timedelta(hours=24)
    probe = before.replace(minute=0, second=0, microsecond=0)
    while probe.astimezone(zone).utcoffset() == before.astimezone(zone).utcoffset():
        probe += QUARTER
    return probe
