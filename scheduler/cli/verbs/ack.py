"""`schedctl ack`: the miss is known."""

from __future__ import annotations

import click

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.times import both
from scheduler.cli.verb import verb


@verb('schedctl ack weekly-report --reason "the shop is closed"', "schedctl ack backup-db")
@click.argument("job")
@click.option("--reason", default="", metavar="TEXT", help="Kept with it.")
def ack(surface: Surface, job: str, reason: str) -> int:
    """Says that the miss of JOB is known: nothing is expected any more of what should have happened until now, and its
    alert ends. The next occurrence counts again. Refused (exit 5) if it has missed nothing."""
    done = surface.daemon.post(f"/v1/jobs/{part(job)}/ack", {"reason": reason})
    if surface.structured(done, [done["job"]]):
        return 0
    now = surface.now()
    surface.out(f"{job}: known, from {both(done['from'], surface.zone, now)} until now")
    if done["deadline_at"]:
        surface.say(f"the next success is due by {both(done['deadline_at'], surface.zone, now)}")
    else:
        surface.say("nothing further is expected of it")
    surface.then(f"schedctl describe {job}")
    return 0
