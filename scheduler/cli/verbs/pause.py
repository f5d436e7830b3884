"""`schedctl pause` and `schedctl resume`."""

from __future__ import annotations

from datetime import datetime

import click

from scheduler.cli.surface import Surface
from scheduler.cli.times import typed
from scheduler.cli.verb import verb
from scheduler.cli.words import pause_of
from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import to_text


@verb(
    'schedctl pause weekly-report --for 2h --reason "database move"',
    "schedctl pause a b c --until 'tomorrow 08:00'",
)
@click.argument("jobs", nargs=-1, metavar="JOB...")
@click.option("--all", "everything", is_flag=True, help="Every job.")
@click.option("--until", metavar="INSTANT", help="When it ends by itself, in your zone: 2026-12-01T08:00, tomorrow.")
@click.option("--for", "length", metavar="DURATION", help="How long: 30m, 2h, 3d.")
@click.option("--reason", default="", metavar="TEXT", help="Shown wherever somebody wonders.")
def pause(
    surface: Surface, jobs: tuple[str, ...], everything: bool, until: str | None, length: str | None, reason: str
) -> int:
    """Lets JOB rest: its times are skipped, its waiting runs wait; what runs goes on, run-now still works.

    Without --until or --for until somebody resumes it."""
    end = _end(surface, until, length)
    names = _names(surface, jobs, everything)
    body = {"jobs": names, "reason": reason, "until": None if end is None else to_text(end)}
    pauses = surface.daemon.post("/v1/pause", body)["pauses"]
    if surface.structured(pauses, [one["job"] for one in pauses]):
        return 0
    for one in pauses:
        surface.out(f"{one['job']}: {pause_of(one, surface.zone, surface.now())}")
    surface.then("schedctl resume " + ("--all" if everything else " ".join(names[:10])))
    return 0


@verb("schedctl resume weekly-report", "schedctl resume --all")
@click.argument("jobs", nargs=-1, metavar="JOB...")
@click.option("--all", "everything", is_flag=True, help="Every job that is paused.")
def resume(surface: Surface, jobs: tuple[str, ...], everything: bool) -> int:
    """Ends the pause of JOB. What its waiting runs waited for is over; skipped times are not made up."""
    names = _names(surface, jobs, everything)
    resumed = surface.daemon.post("/v1/resume", {"jobs": names})["resumed"]
    if surface.structured(resumed, resumed):
        return 0
    for name in resumed:
        surface.out(f"{name}: resumed")
    for name in sorted(set(names) - set(resumed)) if not everything else []:
        surface.say(f"{name}: was not paused")
    surface.then(f"schedctl next {resumed[0]}" if resumed else "schedctl list --paused")
    return 0


def _names(surface: Surface, jobs: tuple[str, ...], everything: bool) -> list[str]:
    if everything == bool(jobs):
        raise click.UsageError("name the jobs, or say --all")
    if not everything:
        return list(jobs)
    names = [job["name"] for job in surface.daemon.get("/v1/jobs")["jobs"]]
    if not names:
        raise click.UsageError("there are no jobs")
    return names


def _end(surface: Surface, until: str | None, length: str | None) -> datetime | None:
    now = surface.now()
    if until and length:
        raise click.UsageError("give --until or --for, not both")
    try:
        if length:
            return now + parse_duration(length)
        return typed(until, now, surface.zone) if until else None
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
