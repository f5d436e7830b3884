"""`schedctl dead-letters`: payloads whose runs gave up, tried again or let go."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from scheduler.cli.complete import complete_job, complete_run
from scheduler.cli.run_view import named_run
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import column
from scheduler.cli.verb import SETTINGS, Listing, verb
from scheduler.cli.words import reason_of
from scheduler.core.errors import NotFound, Refused

Shown = dict[str, Any]

MOST = 1_000
"""Letters in one page of a list, and in one request to retry."""


@click.group("dead-letters", cls=Listing, context_settings=SETTINGS)
def dead_letters() -> None:
    """Runs with a payload that gave up. They stay until somebody retries or discards them.

    Without a command: list."""


def _which(command: Callable[..., Any]) -> Callable[..., Any]:
    """The ways to say which letters."""
    command = click.option("--job", metavar="JOB", shell_complete=complete_job, help="All of this job.")(command)
    return click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_run)(command)


@verb("schedctl dead-letters", "schedctl dead-letters list --job ticket")
@click.option("--job", metavar="JOB", shell_complete=complete_job, help="Only those of this job.")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), default=20, help="How many, newest first (default: 20).")
def list_letters(surface: Surface, job: str | None, limit: int) -> int:
    """Lists runs with a payload that gave up: why, and what they carry."""
    page = surface.daemon.get("/v1/dead-letters", {"job": job, "limit": limit})
    found = page["entries"]
    if surface.structured(found, [one["run_id"] for one in found]):
        return 0
    if not found:
        surface.say("no dead letters" + (f" of {job}" if job else ""))
        surface.then(command_line("runs", job) if job else command_line("status"))
        return 0
    columns = [
        Column("RUN"),
        Column("JOB", 10),
        Column(f"GAVE UP ({surface.zone})", spare=1),
        Column("WHY", 20),
        Column("PAYLOAD", 16, spare=2),
    ]
    times = column([one["finished_at"] for one in found], surface.zone, surface.now())
    rows = [
        [one["short_id"], one["job"], time, _why(one), json.dumps(one["payload"], ensure_ascii=False)]
        for one, time in zip(found, times, strict=True)
    ]
    surface.table(columns, rows)
    if page["cursor"] is not None:
        surface.say(f"there are more; -n {min(limit * 5, MOST)} shows them")
    first = next((one for one in found if one["holds_up"]), found[0])["short_id"]
    surface.say(f"to let one go: {command_line('dead-letters', 'discard', first)}")
    surface.then(command_line("dead-letters", "retry", first))
    return 0


@verb("schedctl dead-letters retry 3f2a91c0", 'schedctl dead-letters retry --job ticket --reason "API is back"')
@_which
@click.option("--reason", default="", metavar="TEXT", help="Kept with the new runs.")
def retry(surface: Surface, runs: tuple[str, ...], job: str | None, reason: str) -> int:
    """Makes a new run of each letter, with its payload. Exit 1 if one of them could not be retried."""
    body = {**_chosen(surface, runs, job, "retry"), "reason": reason}
    done = surface.daemon.post("/v1/dead-letters/retry", body)["retried"]
    made = [one for one in done if one["error"] is None]
    code = 0 if len(made) == len(done) else 1
    if surface.structured(done, [one["run_id"] for one in made]):
        return code
    for one in made:
        surface.out(one["run_id"])
    for one in done:
        if one["error"] is not None:
            surface.say(f"{one['retry_of'][-8:]}: {one['error']['detail']}")
    surface.say(f"{counted(len(made), 'dead letter')} retried")
    if len(done) >= MOST:
        surface.say("at most so many are retried at once; type it again for the rest")
    surface.then(command_line("logs", "-f", made[0]["run_id"][-8:]) if made else command_line("dead-letters", "list"))
    return code


@verb("schedctl dead-letters discard 3f2a91c0", "schedctl dead-letters discard --job ticket")
@_which
def discard(surface: Surface, runs: tuple[str, ...], job: str | None) -> int:
    """Lets letters go: nobody is told of them any more. The runs stay in the history, with their payloads, as long as
    others do, and `schedctl retry` takes them."""
    gone = surface.daemon.post("/v1/dead-letters/discard", _chosen(surface, runs, job, "discard"))["discarded"]
    if surface.structured(gone, gone):
        return 0
    for run in gone:
        surface.out(run)
    surface.say(f"{counted(len(gone), 'dead letter')} discarded")
    surface.then(command_line("status"))
    return 0


def _why(letter: Shown) -> str:
    behind = letter["holds_up"]
    waiting = f"; {counted(behind, 'run waits', 'runs wait')} behind it" if behind else ""
    return reason_of(letter) + waiting


def _chosen(surface: Surface, runs: tuple[str, ...], job: str | None, what: str) -> Shown:
    """The body that means these letters. UsageError if none or both ways were typed, NotFound for a run that is not
    there, Refused for one that is no dead letter (any more)."""
    if bool(runs) == (job is not None):
        raise click.UsageError("name the runs, or say --job JOB")
    if job is not None:
        return {"job": job}
    return {"runs": [_letter(surface, text, what) for text in runs]}


def _letter(surface: Surface, text: str, what: str) -> str:
    run = named_run(surface, text)
    # A job's name may look like the end of an id.
    if run is None or not run["run_id"].endswith(text):
        hint = f"for all of a job: {command_line('dead-letters', what, '--job', text)}"
        raise NotFound(f"no run {text!r}", hint=hint)
    if run["status"] != "FAILED" or not run["has_payload"] or run["discarded_at"] is not None:
        if run["retried_by"]:
            why = f"it was retried by {run['retried_by'][-1][-8:]}"
        elif run["discarded_at"] is not None:
            why = "it was discarded"
        else:
            why = str(run["status"]) if run["has_payload"] else "it carried no payload"
        raise Refused(f"run {run['short_id']} is no dead letter: {why}", hint=command_line("runs", run["short_id"]))
    return str(run["run_id"])


dead_letters.add_command(list_letters, "list")
dead_letters.add_command(retry, "retry")
dead_letters.add_command(discard, "discard")
