"""When a job runs: its zone, its schedule and its blackouts, with what is wrong about them told at its place."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime, tzinfo
from typing import Protocol, cast

from scheduler.config.models.job import JobModel
from scheduler.config.problem import Path
from scheduler.core.errors import ScheduleError
from scheduler.core.instants import instant_of_wall
from scheduler.core.job import Blackout
from scheduler.core.schedule import DayMatch, Schedule
from scheduler.core.value_object import value_object
from scheduler.core.zone import zone_of


class Complain(Protocol):
    def __call__(self, path: Path, reason: str, hint: str | None, *, key: bool = False) -> None:
        """Tells a problem at a path below the job, or at its key."""
        ...


@value_object
class Timing:
    """`broken` are keys that were told already; `zone_written`: somebody wrote a zone, be it right or wrong."""

    name: str
    model: JobModel
    broken: Set[str]
    zone_written: bool
    complain: Complain

    def zone(self) -> tzinfo | None:
        """None if there is none that can be used."""
        model = self.model
        if model.timezone is None:
            needs = model.schedule is not None or any(one.schedule for one in model.blackouts)
            if needs and "timezone" not in self.broken:
                key = ("schedule",) if model.schedule is not None else ("blackouts",)
                hint = "add timezone: Asia/Shanghai (or where you are) to the job or to `defaults`"
                self.complain(key, "a schedule without a time zone", hint, key=True)
            return None
        try:
            return zone_of(model.timezone)
        except ScheduleError as error:
            self.complain(("timezone",), error.reason, error.hint)
            return None

    def schedule(self, zone: tzinfo | None) -> Schedule | None:
        if self.model.schedule is None:
            return None
        return self._compiled(self.model.schedule, zone, ("schedule",))

    def blackouts(self, zone: tzinfo | None) -> tuple[Blackout, ...]:
        made = []
        for index, one in enumerate(self.model.blackouts):
            if one.schedule is not None:
                schedule = self._compiled((one.schedule,), zone, ("blackouts", index, "schedule"))
                made.append(Blackout(one.reason, schedule=schedule, length=one.length))
                continue
            start, end = (self._instant(moment, zone, index) for moment in (one.start, one.end))
            if start is not None and end is not None and start >= end:
                hint = "correct `from` or `to`"
                self.complain(("blackouts", index, "to"), "the blackout ends before it begins", hint)
            made.append(Blackout(one.reason, start=start, end=end))
        return tuple(made)

    def _compiled(self, expressions: tuple[str, ...], zone: tzinfo | None, path: Path) -> Schedule | None:
        """The schedule; each bad expression is told at its place."""
        named = self.model.timezone
        zone_name = named if zone is not None and named is not None else "UTC"
        day_match = cast(DayMatch, self.model.day_match)
        hashed = self.name if any("h" in one.casefold() for one in expressions) else ""
        try:
            return Schedule(expressions, zone_name, day_match, hashed)
        except ScheduleError as error:
            whole = error
        found = False
        for index, expression in enumerate(expressions):
            try:
                Schedule((expression,), zone_name, day_match, hashed)
            except ScheduleError as error:
                found = True
                self.complain((*path, index), error.reason, error.hint)
        if not found:
            self.complain(path, whole.reason, whole.hint)
        return None

    def _instant(self, moment: datetime | None, zone: tzinfo | None, index: int) -> datetime | None:
        if moment is None:
            return None
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        if zone is not None:
            return instant_of_wall(moment, zone)
        if not self.zone_written:
            hint = "add timezone to the job or to `defaults`, or an offset: 2026-12-24T00:00+08:00"
            self.complain(("blackouts", index), "a wall-clock time without a time zone", hint)
        return None
