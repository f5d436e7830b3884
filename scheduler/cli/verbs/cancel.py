"""`schedctl cancel` and `schedctl retry`."""

from __future__ import annotations

import click

from scheduler.cli.complete import complete_run
from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.verb import verb
from scheduler.cli.words import PAYLOAD_OF_CANCELED


@verb("schedctl cancel 3f2a91c0", 'schedctl cancel weekly-report --reason "wrong month"')
@click.argument("run", shell_complete=complete_run)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the run.")
def cancel(surface: Surface, run: str, reason: str) -> int:
    """Ends RUN: an id, the end of one, or a JOB (its unfinished run). TERM first, KILL after the job's kill_after."""
    seen = surface.daemon.post(f"/v1/runs/{part(run)}/cancel", {"reason": reason})
    if surface.structured(seen, [seen["run_id"]]):
        return 0
    over = seen["status"] == "CANCELED"
    surface.out(f"{seen['job']} {seen['short_id']}: {'' if over else 'asked to end: '}{seen['cancel']}")
    if seen["has_payload"]:
        surface.say(f"{PAYLOAD_OF_CANCELED}; to run it again: {command_line('retry', seen['short_id'])}")
    surface.then(command_line("runs", seen["short_id"]) if over else command_line("logs", "-f", seen["short_id"]))
    return 0


@verb("schedctl retry 3f2a91c0", 'schedctl retry weekly-report --reason "disk was full"')
@click.argument("run", shell_complete=complete_run)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the new run.")
def retry(surface: Surface, run: str, reason: str) -> int:
    """Makes a new run of a finished RUN, with its payload; a run that waits for its next attempt runs now."""
    seen = surface.daemon.post(f"/v1/runs/{part(run)}/retry", {"reason": reason})
    if surface.structured(seen, [seen["run_id"]]):
        return 0
    surface.out(seen["run_id"])
    of = f", again for {seen['retry_of'][-8:]}" if seen["retry_of"] else ", without waiting any longer"
    surface.say(f"{seen['job']}: accepted{of}")
    surface.then(command_line("logs", "-f", seen["short_id"]))
    return 0
