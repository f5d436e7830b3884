"""`schedctl pause` and `schedctl resume`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import typed
from scheduler.cli.verb import verb
from scheduler.cli.words import pause_of
from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.stamp import to_text
from scheduler.core.value_object import value_object

MANY = 20
"""Jobs that are told one by one."""


def _targets(command: Callable[..., Any]) -> Callable[..., Any]:
    """The ways to say which jobs."""
    command = click.option("--tag", metavar="TAG", help="Every job with this tag.")(command)
    command = click.option("--team", metavar="TEAM", help="Every job of this team.")(command)
    command = click.option("--all", "everything", is_flag=True, help="Every job.")(command)
    return click.argument("jobs", nargs=-1, metavar="JOB...", shell_complete=complete_job)(command)


@verb(
    'schedctl pause weekly-report --for 2h --reason "database move"',
    "schedctl pause a b c --until 'tomorrow 08:00'",
    "schedctl pause --tag database --for 1h",
)
@_targets
@click.option("--until", metavar="INSTANT", help="When it ends by itself, in your zone: 2026-12-01T08:00, tomorrow.")
@click.option("--for", "length", metavar="DURATION", help="How long: 30m, 2h, 3d.")
@click.option("--reason", default="", metavar="TEXT", help="Shown wherever somebody wonders.")
def pause(surface: Surface, until: str | None, length: str | None, reason: str, **which: Any) -> int:
    """Lets JOB rest: its times are skipped, its waiting runs wait; what runs goes on, run-now still works.

    Without --until or --for until somebody resumes it."""
    end = _end(surface, until, length)
    chosen = Chosen(**which)
    names = chosen.names(surface)
    body = {"jobs": names, "reason": reason, "until": None if end is None else to_text(end)}
    pauses = surface.daemon.post("/v1/pause", body)["pauses"]
    if surface.structured(pauses, [one["job"] for one in pauses]):
        return 0
    for one in pauses[:MANY]:
        surface.out(f"{one['job']}: {pause_of(one, surface.zone, surface.now())}")
    if len(pauses) > MANY:
        surface.out(f"… and {len(pauses) - MANY} more")
        surface.say(f"{counted(len(pauses), 'job')}: {pause_of(pauses[0], surface.zone, surface.now())}")
    surface.then(command_line("resume", *chosen.again))
    return 0


@verb("schedctl resume weekly-report", "schedctl resume --all", "schedctl resume --tag database")
@_targets
def resume(surface: Surface, **which: Any) -> int:
    """Ends the pause of JOB. What its waiting runs waited for is over; skipped times are not made up."""
    chosen = Chosen(**which)
    names = chosen.names(surface)
    resumed = surface.daemon.post("/v1/resume", {"jobs": names})["resumed"]
    if surface.structured(resumed, resumed):
        return 0
    for name in resumed[:MANY]:
        surface.out(f"{name}: resumed")
    if len(resumed) > MANY:
        surface.out(f"… and {len(resumed) - MANY} more")
    for name in sorted(set(chosen.jobs) - set(resumed)):
        surface.say(f"{name}: was not paused")
    if len(resumed) > MANY or (chosen.bulk and not resumed):
        surface.say(f"{counted(len(resumed), 'job')} resumed")
    named = resumed if len(resumed) == 1 else []
    surface.then(command_line("next", *named) if resumed else command_line("list", "--paused"))
    return 0


@value_object
class Chosen:
    """Which jobs are meant: names, or all, or all of a team or with a tag."""

    jobs: tuple[str, ...]
    everything: bool
    team: str | None
    tag: str | None

    @property
    def bulk(self) -> bool:
        return not self.jobs

    @property
    def again(self) -> list[str]:
        """The arguments that mean the same jobs."""
        if self.everything:
            return ["--all"]
        pairs = (("--team", self.team), ("--tag", self.tag))
        return [*self.jobs, *(word for option, value in pairs if value is not None for word in (option, value))]

    def names(self, surface: Surface) -> list[str]:
        """At least one; UsageError for contradictions and for nobody."""
        some = self.team is not None or self.tag is not None
        if [bool(self.jobs), self.everything, some].count(True) != 1:
            raise click.UsageError("name the jobs, or say --all, or --team or --tag")
        if not self.bulk:
            return list(self.jobs)
        found = surface.daemon.get("/v1/jobs", {"team": self.team, "tag": self.tag})["jobs"]
        if not found:
            raise NotFound("no job matches", hint=command_line("list"))
        return [job["name"] for job in found]


def _end(surface: Surface, until: str | None, length: str | None) -> datetime | None:
    now = surface.now()
    if until and length:
        raise click.UsageError("give --until or --for, not both")
    try:
        if length:
            duration = parse_duration(length)
            if not duration:
                raise click.UsageError("--for 0s pauses nothing; give a longer time, or neither --for nor --until")
            return now + duration
        return typed(until, now, surface.zone) if until else None
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
