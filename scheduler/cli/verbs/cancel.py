"""`schedctl cancel` and `schedctl retry`."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.complete import complete_run
from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line
from scheduler.cli.times import ago, read
from scheduler.cli.verb import verb
from scheduler.cli.words import PAYLOAD_OF_CANCELED

Shown = dict[str, Any]


@verb(
    "schedctl cancel 3f2a91c0",
    'schedctl cancel weekly-report --reason "wrong month"',
    "schedctl cancel weekly-report --all",
)
@click.argument("run", shell_complete=complete_run)
@click.option("--all", "everything", is_flag=True, help="All unfinished runs of the JOB, also those that wait.")
@click.option("--reason", default="", metavar="TEXT", help="Kept with the run.")
def cancel(surface: Surface, run: str, everything: bool, reason: str) -> int:
    """Ends RUN: an id, the end of one, or a JOB (its unfinished run, if there is only one). TERM first, KILL after the
    job's kill_after."""
    if everything:
        return _cancel_all(surface, run, reason)
    seen = surface.daemon.post(f"/v1/runs/{part(run)}/cancel", {"reason": reason})
    if surface.structured(seen, [seen["run_id"]]):
        return 0
    surface.out(_said(surface, seen))
    if seen["has_payload"]:
        surface.say(f"{PAYLOAD_OF_CANCELED}; to run it again: {command_line('retry', seen['short_id'])}")
    over = seen["status"] == "CANCELED"
    surface.then(command_line("runs", seen["short_id"]) if over else command_line("logs", "-f", seen["short_id"]))
    return 0


def _cancel_all(surface: Surface, job: str, reason: str) -> int:
    seen = surface.daemon.post(f"/v1/jobs/{part(job)}/cancel", {"reason": reason})["runs"]
    if surface.structured(seen, [one["run_id"] for one in seen]):
        return 0
    for one in seen:
        surface.out(_said(surface, one))
    surface.then(command_line("runs", job))
    return 0


def _said(surface: Surface, seen: Shown) -> str:
    name = f"{seen['job']} {seen['short_id']}"
    if seen["status"] == "CANCELED":
        return f"{name}: {seen['cancel']}"
    if not seen["asked_before"]:
        return f"{name}: asked to end{_killed(surface, seen, ' if it does not')}: {seen['cancel']}"
    said = ago(seen["asked_at"], surface.now()) if seen["asked_at"] else ""
    # "asked to end now" would be an order.
    when = " just now" if said == "now" else f" {said}" if said else ""
    return f"{name}: was already asked to end{when}{_killed(surface, seen, '')}: {seen['cancel']}"


def _killed(surface: Surface, seen: Shown, unless: str) -> str:
    """` (is killed in 18s)`; nothing if that is not known."""
    kill_at = read(seen["kill_at"])
    if kill_at is None:
        return ""
    over = kill_at <= surface.now()
    return " (is being killed)" if over else f" (is killed {ago(seen['kill_at'], surface.now())}{unless})"


@verb("schedctl retry 3f2a91c0", 'schedctl retry weekly-report --reason "disk was full"')
@click.argument("run", shell_complete=complete_run)
@click.option("--reason", default="", metavar="TEXT", help="Kept with the run.")
def retry(surface: Surface, run: str, reason: str) -> int:
    """Makes a new run of a finished RUN, with its payload; a run that waits for its next attempt runs now."""
    seen = surface.daemon.post(f"/v1/runs/{part(run)}/retry", {"reason": reason})
    if surface.structured(seen, [seen["run_id"]]):
        return 0
    surface.out(seen["run_id"])
    surface.say(f"{seen['job']}: accepted{_how(seen)}")
    surface.then(command_line("logs", "-f", seen["short_id"]))
    return 0


def _how(retried: Shown) -> str:
    if retried["retry_of"]:
        return f", again for {retried['retry_of'][-8:]}"
    waits_for = {"lock": "its lock", "pause": "the end of the pause"}.get(retried["waits_for"])
    return f"; it waits for {waits_for}" if waits_for else ", without waiting any longer"
