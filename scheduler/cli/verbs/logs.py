"""`schedctl logs`: what a run printed."""

from __future__ import annotations

import click

from scheduler.cli.complete import complete_run
from scheduler.cli.daemon import part
from scheduler.cli.follow import follow as follow_run
from scheduler.cli.follow import last_lines
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.verb import exact_option, verb
from scheduler.cli.words import cause_of, verdict_of
from scheduler.core.model import ELSEWHERE


@verb("schedctl logs weekly-report", "schedctl logs 3f2a91c0 --attempt 1", "schedctl logs -f weekly-report")
@click.argument("run", shell_complete=complete_run)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run is over.")
@click.option("--attempt", type=click.IntRange(1), help="That attempt (default: the last one that printed anything).")
@click.option(
    "-n",
    "--tail",
    "--lines",
    "tail",
    type=click.IntRange(0),
    metavar="LINES",
    help="Only the last lines of what is there.",
)
@exact_option
@click.option("--last", is_flag=True, hidden=True, help="What a JOB means anyway.")
def logs(surface: Surface, run: str, follow: bool, attempt: int | None, tail: int | None, last: bool) -> int:
    """Writes what RUN printed. RUN is an id, the end of one, or a JOB: its running run, else its last."""
    seen = surface.daemon.get(f"/v1/runs/{part(run)}")
    if surface.format == "name":
        surface.out(seen["run_id"])
        return 0
    if surface.format != "table":
        body, headers = surface.daemon.raw(f"/v1/runs/{seen['run_id']}/log", {"attempt": attempt})
        number = int(headers["Schedctl-Attempt"])
        output = last_lines(body, tail).decode("utf-8", "replace")
        data = {"run_id": seen["run_id"], "attempt": number, "output": output}
        surface.structured(data, [])
        return 0
    surface.say(
        f"{seen['job']} {seen['short_id']}: {cause_of(seen)}, {surface.when(seen['started_at'] or seen['created_at'])}"
    )
    if follow:
        seen = follow_run(surface, seen["run_id"], attempt=attempt, tail=tail)
        size = 1
    else:
        body, headers = surface.daemon.raw(f"/v1/runs/{seen['run_id']}/log", {"attempt": attempt})
        surface.raw(last_lines(body, tail))
        surface.end_line(body)
        size = len(body)
    if not size:
        surface.say("(it has printed nothing)")
    surface.say(verdict_of(seen, surface.now()))
    if seen["status"] in ("RUNNING", "PENDING"):
        surface.then(command_line("logs", "-f", seen["short_id"]))
    elif seen["status"] == "FAILED" and seen["node"] != ELSEWHERE:
        surface.then(command_line("retry", seen["short_id"]))
    else:
        surface.then(command_line("runs", seen["short_id"]))
    return 0
