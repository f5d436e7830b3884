"""`schedctl next`: coming times, of cron expressions (offline) or of jobs (from the daemon)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.times import read, typed, zone_or_utc
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput
from scheduler.core.instants import relative
from scheduler.core.stamp import to_text
from scheduler.core.zone import zone_of

if TYPE_CHECKING:
    from scheduler.core.schedule import Schedule

Shown = dict[str, Any]

MOST = 100_000
_STEP = timedelta(days=200 * 366)
_TICK = timedelta(microseconds=1)
_END = datetime(9999, 1, 1, tzinfo=UTC)


@verb(
    "schedctl next",
    "schedctl next weekly-report -n 3",
    'schedctl next --cron "15 2 * * *" --timezone America/New_York --from 2026-03-07 -n 3',
    name="next",
)
@click.argument("job", nargs=-1)
@click.option("--cron", multiple=True, metavar="EXPR", help="A cron expression instead of a job; may be repeated.")
@click.option("--timezone", "--tz", "zone", metavar="ZONE", help="Zone of --cron (default: yours); zone of --from.")
@click.option("--from", "start", metavar="INSTANT", default="now", help="Times strictly after this (default: now).")
@click.option("-n", "--count", type=click.IntRange(1, MOST), default=10, help="How many in all (default: 10).")
@click.option(
    "--day-match",
    type=click.Choice(["cron", "or", "and"]),
    default="cron",
    help="How day of month and day of week combine in --cron (default: cron).",
)
@click.option("--name", "hash_name", default="", metavar="NAME", help="The name that H in --cron hashes.")
def next_times(
    surface: Surface,
    job: tuple[str, ...],
    cron: tuple[str, ...],
    zone: str | None,
    start: str,
    count: int,
    day_match: str,
    hash_name: str,
) -> int:
    """Coming times of JOB, of all jobs, or of a cron expression: in UTC and in its zone, with what the clock does then.

    With --cron it needs no daemon and no jobs.yaml."""
    now = surface.now()
    zone = zone or surface.zone
    try:
        zone_of(zone)
        after = typed(start, now, zone)
    except InvalidInput as error:
        raise click.UsageError(f"{error.reason}; {error.hint}" if error.hint else error.reason) from None
    if cron:
        if job:
            raise click.UsageError("give a JOB or --cron, not both")
        return _of_cron(surface, cron, zone, after, now, count, day_match, hash_name)
    return _of_jobs(surface, job, after, now, count)


def _of_cron(
    surface: Surface,
    cron: tuple[str, ...],
    zone: str,
    after: datetime,
    now: datetime,
    count: int,
    day_match: str,
    hash_name: str,
) -> int:
    from scheduler.core.explain import note
    from scheduler.core.schedule import Schedule

    schedule = Schedule(cron, zone, day_match, hash_name)  # type: ignore[arg-type]
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
    columns = [Column(f"TIME ({zone})"), Column("UTC"), Column("LEFT", spare=1), Column("NOTE", 12)]
    surface.table(columns, time_rows(found, now, zone))
    surface.then(f'schedctl explain "{cron[0]}" --timezone {zone}')
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


def _of_jobs(surface: Surface, jobs: tuple[str, ...], after: datetime, now: datetime, count: int) -> int:
    query = {"job": list(jobs), "from": to_text(after), "count": min(count, 10_000)}
    found = surface.daemon.get("/v1/next", query)["next"]
    if surface.structured(found, [one["utc"] for one in found]):
        return 0
    if not found:
        surface.say("nothing is to come: no schedule, or not enabled")
        surface.then(f"schedctl describe {jobs[0]}" if jobs else "schedctl list")
        return 0
    columns = [Column("JOB", 12), Column("TIME"), Column("UTC", spare=2), Column("LEFT", spare=1), Column("NOTE", 12)]
    rows = [[one["job"], *row] for one, row in zip(found, time_rows(found, now), strict=True)]
    surface.table(columns, rows)
    surface.then(f"schedctl describe {found[0]['job']}")
    return 0


def time_rows(found: list[Shown], now: datetime, zone: str | None = None) -> list[list[str]]:
    """Local time with its offset, UTC, distance and remarks; seconds only if any of them has seconds."""
    seconds = any(not one["utc"].endswith(":00Z") for one in found)
    return [_time_row(one, zone or one["zone"], now, "%H:%M:%S" if seconds else "%H:%M") for one in found]


def _time_row(one: Shown, zone: str, now: datetime, clock: str) -> list[str]:
    instant = read(one["utc"])
    assert instant is not None
    local = instant.astimezone(zone_or_utc(zone)[0])
    remark = "; ".join(text for text in (one.get("excused") and f"will not run: {one['excused']}", one["note"]) if text)
    return [
        f"{local:%a %Y-%m-%d} {local:{clock}} {local:%z}",
        f"{instant:%m-%d {clock}}Z",
        relative(instant, now=now),
        remark,
    ]
