"""`schedctl ping`: a job that runs elsewhere tells how it is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.surface import Surface
from scheduler.cli.teller import Ping, Teller
from scheduler.cli.verb import verb

TIMEOUT = 10.0
"""Seconds that the daemon may take: whoever pings has other things to do."""


@verb(
    "schedctl ping backup",
    "schedctl ping backup --start",
    "schedctl ping backup --exit-code $? --body @/var/log/backup.log",
)
@click.argument("job", shell_complete=complete_job)
@click.option("--start", "what", flag_value="start", help="A run begins.")
@click.option("--fail", "what", flag_value="fail", help="It failed.")
@click.option("--log", "what", flag_value="log", help="It goes on, and says what --body has.")
@click.option("--exit-code", type=click.IntRange(0, 255), metavar="CODE", help="It ended so: 0 is success.")
@click.option("--rid", type=click.UUID, metavar="UUID", help="The same for all pings of one run.")
@click.option("--body", metavar="TEXT", help="What it printed (the last 10 kB); @FILE or @- reads it.")
def ping(
    surface: Surface, job: str, what: str | None, exit_code: int | None, rid: object | None, body: str | None
) -> int:
    """Tells that a run of JOB, which runs elsewhere (`external: true`), ended well; or with an option what else.

    Prints nothing on success, unless on a terminal: cron would mail it. To wrap a whole command: schedctl exec."""
    if what is not None and exit_code is not None:
        raise click.UsageError(f"--{what} and --exit-code are two different pings")
    word = (what or "") if exit_code is None else str(exit_code)
    query = {"rid": None if rid is None else str(rid)}
    told = Ping(job, word, query, b"" if body is None else read_body(body))
    run = Teller(surface.socket, surface.environ).tell(told, TIMEOUT)
    if surface.structured({"job": job, "run_id": run}, [run] if run else []):
        return 0
    if surface.columns is not None:
        surface.say(f"{job}: noted" if run else f"{job}: there is no run that this could be kept with")
        if run:
            surface.then(f"schedctl logs {run[-8:]}" if body else f"schedctl runs {run[-8:]}")
    return 0


def read_body(text: str) -> bytes:
    """As typed, out of a file (`@path`) or from stdin (`@-`). UsageError if that cannot be read."""
    if text == "@-":
        return sys.stdin.buffer.read()
    if not text.startswith("@"):
        return text.encode("utf-8", "surrogateescape")
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise click.UsageError(f"--body: cannot read {text[1:]}: {error.strerror}") from None
