"""`schedctl next`: coming times, of cron expressions (offline) or of jobs (from the daemon)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line
from scheduler.cli.times import ago, at, column, typed, zone_or_utc
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput, ScheduleError
from scheduler.core.stamp import to_text
from scheduler.core.value_object import value_object
from scheduler.core.zone import zone_of

if TYPE_CHECKING:
    from scheduler.core.schedule import Schedule

Shown = dict[str, Any]

MOST = 100_000
_HASHED = re.compile(r"(?<![a-z@])h(?![a-z])", re.IGNORECASE)
UTC_TITLE = "TIME (UTC)"
DAY_MATCHES = ("cron", "or", "and")
_STEP = timedelta(days=200 * 366)
_TICK = timedelta(microseconds=1)
_END = datetime(9999, 1, 1, tzinfo=UTC)


@verb(
    "schedctl next",
    "schedctl next weekly-report -n 3",
    'schedctl next --cron "15 2 * * *" --tz America/New_York --from 2026-03-07 -n 3',
    name="next",
)
@click.argument("job", nargs=-1, shell_complete=complete_job)
@click.option("--cron", multiple=True, metavar="EXPR", help="A cron expression instead of a job; may be repeated.")
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="Zone of --cron (default: yours); zone of --from.")
@click.option("--from", "start", metavar="INSTANT", default="now", help="Times strictly after this (default: now).")
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=10, help="How many in all (default: 10).")
@click.option(
    "--day-match",
    type=click.Choice(DAY_MATCHES),
    help="How day of month and day of week combine in --cron (default: cron).",
)
@click.option("--name", "hash_name", metavar="NAME", help="The name of the job, which H in --cron hashes.")
def next_times(
    surface: Surface,
    job: tuple[str, ...],
    cron: tuple[str, ...],
    zone: str | None,
    start: str,
    count: int,
    day_match: str | None,
    hash_name: str | None,
) -> int:
    """Coming times of JOB, of all jobs, or of a cron expression: in UTC and in its zone, with what the clock does then.

    With --cron it needs no daemon and no jobs.yaml."""
    now = surface.now()
    if cron and job:
        raise click.UsageError("give a JOB or --cron, not both")
    for option, value in (("--day-match", day_match), ("--name", hash_name)):
        if value is not None and not cron:
            raise click.UsageError(f"{option} belongs to --cron: a job has its own in jobs.yaml")
    try:
        zone_of(zone or surface.zone)
        after = typed(start, now, zone or surface.zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}" if error.hint else error.reason) from None
    if cron:
        return _of_cron(surface, Expressions(cron, zone or surface.zone, day_match, hash_name), after, count)
    return _of_jobs(surface, job, after, count)


@value_object
class Expressions:
    """What was typed in place of a job."""

    cron: tuple[str, ...]
    zone: str
    day_match: str | None = None
    hash_name: str | None = None

    def schedule(self) -> Schedule:
        """Raises ScheduleError."""
        from scheduler.core.schedule import Schedule

        try:
            return Schedule(self.cron, self.zone, self.day_match or "cron", self.hash_name or "")  # type: ignore[arg-type]
        except ScheduleError as error:
            if self.hash_name or not any(map(_HASHED.search, self.cron)):
                raise
            raise ScheduleError(error.reason, hint="say whose times are meant: --name JOB") from None

    @property
    def options(self) -> list[str]:
        """What another verb needs to mean the same schedule, besides the expressions."""
        given = (("--timezone", self.zone), ("--day-match", self.day_match), ("--name", self.hash_name))
        return [word for option, value in given if value for word in (option, value)]


def _of_cron(surface: Surface, typed_in: Expressions, after: datetime, count: int) -> int:
    from scheduler.core.explain import note

    schedule = typed_in.schedule()
    found = [
        {
            "utc": to_text(instant),
            "local": instant.astimezone(schedule.tzinfo).isoformat(),
            "note": note(schedule, instant),
        }
        for instant in islice(occurrences(schedule, after), count)
    ]
    if len(found) < count:
        surface.say(f"schedctl: only {len(found)} of {count} times come before the end of the calendar")
    if surface.structured(found, [str(one["utc"]) for one in found]):
        return 0
    _show(surface, [one | {"zone": typed_in.zone} for one in found], with_job=False)
    surface.then(command_line("explain", *typed_in.options, *typed_in.cron))
    return 0


def occurrences(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """All occurrences strictly after `after`, until none comes for two centuries."""
    start = after + _TICK
    while start < _END:
        end = start + min(_STEP, _END - start)
        found = False
        for instant in schedule.between(start, end):
            found = True
            yield instant
        if not found:
            return
        start = end + _TICK


def _of_jobs(surface: Surface, jobs: tuple[str, ...], after: datetime, count: int) -> int:
    query = {"job": list(jobs), "from": to_text(after), "count": min(count, 10_000)}
    found = surface.daemon.get("/v1/next", query)["next"]
    if surface.structured(found, [one["utc"] for one in found]):
        return 0
    if not found:
        surface.say("nothing is to come: no schedule, or not enabled")
        surface.then(command_line("describe", jobs[0]) if jobs else command_line("list"))
        return 0
    _show(surface, found, with_job=True)
    surface.then(command_line("describe", found[0]["job"]))
    return 0


def _show(surface: Surface, found: list[Shown], *, with_job: bool) -> None:
    (title, *utc), rows = time_rows(surface, found)
    columns = [Column(title), *(Column(one, spare=2) for one in utc), Column("LEFT", spare=1), Column("NOTE", 12)]
    if with_job:
        columns.insert(0, Column("JOB", 12))
        rows = [[one["job"], *row] for one, row in zip(found, rows, strict=True)]
    surface.table(columns, rows)


def time_rows(surface: Surface, found: list[Shown]) -> tuple[list[str], list[list[str]]]:
    """The titles of the columns of times, and per occurrence: by the clock of its zone, in UTC (unless that is the zone
    of them all), how far it is, remarks."""
    now, texts, zones = surface.now(), [one["utc"] for one in found], {one["zone"] for one in found}
    utc = column(texts, "UTC", now)
    rest = [[ago(one["utc"], now), _remark(one)] for one in found]
    if len(zones) == 1:
        zone = zones.pop()
        title, local = f"TIME ({zone_or_utc(zone)[1]})", column(texts, zone, now)
    else:
        title, local = "TIME", [at(one["utc"], one["zone"], now) for one in found]
    if title == UTC_TITLE:
        return [title], [[one, *more] for one, more in zip(utc, rest, strict=True)]
    return [title, UTC_TITLE], [[mine, one, *more] for mine, one, more in zip(local, utc, rest, strict=True)]


def _remark(one: Shown) -> str:
    excused = one.get("excused") and f"will not run: {one['excused']}"
    return "; ".join(text for text in (excused, one["note"]) if text)
