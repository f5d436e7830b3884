"""`schedctl run-now`: one run, now."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.daemon import part
from scheduler.cli.follow import WaitedTooLong, follow, wait
from scheduler.cli.surface import Surface
from scheduler.cli.text import command_line, counted
from scheduler.cli.verb import exact_option, verb
from scheduler.cli.words import PAYLOAD_OF_CANCELED, verdict_of, waits
from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput

WAIT_OVER = 6
SHOWN = 10
"""Replaced runs that are told one by one."""


@verb(
    "schedctl run-now weekly-report",
    'schedctl run-now weekly-report --wait --reason "numbers were wrong"',
    "schedctl run-now ticket --payload '{\"order\": 17}'",
)
@click.argument("job", shell_complete=complete_job)
@click.option("-w", "--wait", "waiting", is_flag=True, help="Show its output; exit 0 only if it completes.")
@click.option("-f", "--follow", "following", is_flag=True, help="The same as --wait.")
@exact_option
@click.option("--timeout", metavar="DURATION", help="With --wait: exit 6 after so long; the run goes on.")
@click.option("--payload", metavar="JSON", help="JSON for the run; @FILE or @- reads it.")
@click.option("--reason", default="", metavar="TEXT", help="Kept with the run and shown beside it.")
@click.option("--queue", "if_busy", flag_value="queue", help="While the job has an unfinished run: wait for it.")
@click.option("--replace", "if_busy", flag_value="replace", help="While the job has an unfinished run: cancel that.")
@click.option("--key", metavar="KEY", help="Idempotency key: the same key never makes a second run.")
def run_now(
    surface: Surface,
    job: str,
    waiting: bool,
    following: bool,
    timeout: str | None,
    payload: str | None,
    reason: str,
    if_busy: str | None,
    key: str | None,
) -> int:
    """Runs JOB now, whatever its schedule and pauses say, and prints the run's id.

    Refused (exit 5) while the job has an unfinished run, unless its runs may overlap (`overlap: allow`), or --queue,
    --replace or --payload is given."""
    deadline = _deadline(timeout)
    body: dict[str, Any] = {"reason": reason, "cause": "manual"}
    if if_busy:
        body["if_busy"] = if_busy
    if payload is not None:
        body["payload"] = read_payload(payload)
    headers = {"Idempotency-Key": key} if key else None
    busy = _unfinished(surface, job) if if_busy == "replace" else []
    made = surface.daemon.post(f"/v1/jobs/{part(job)}/runs", body, headers=headers)
    run, short = made["run_id"], made["run_id"][-8:]
    if made["new"]:
        _tell_replaced(surface, busy)
    if made.get("holdup"):
        surface.say(f"nobody will start it for the time being: {made['holdup']}")
    if not (waiting or following):
        if surface.structured(made, [run]):
            return 0
        surface.out(run)
        surface.say(f"{job}: {_accepted(made, surface.now())}")
        surface.then(command_line("logs", "-f", short))
        return 0
    return _wait(surface, run, short, deadline)


def _unfinished(surface: Surface, job: str) -> list[dict[str, Any]]:
    query = {"job": job, "status": ["PENDING", "RUNNING"], "skips": "false", "limit": 1000}
    return list(surface.daemon.get("/v1/runs", query)["entries"])


def _tell_replaced(surface: Surface, runs: list[dict[str, Any]]) -> None:
    """Whom --replace has ended, what becomes of their payloads, and whom it leaves in the line."""
    kept = [one for one in runs if one["status"] == "PENDING" and one["has_payload"] and one["cause"] != "manual"]
    runs = [one for one in runs if one not in kept]
    for one in runs[:SHOWN]:
        done = "asked to end" if one["status"] == "RUNNING" else "canceled"
        payload = f"; {PAYLOAD_OF_CANCELED}" if one["has_payload"] else ""
        surface.say(f"replaces {one['short_id']} ({done}{payload})")
    if len(runs) > SHOWN:
        surface.say(f"… and {len(runs) - SHOWN} more")
    if kept:
        surface.say(f"keeps {counted(len(kept), 'waiting run')} with a payload that was handed in; it runs after them")


def _wait(surface: Surface, run: str, short: str, deadline: float | None) -> int:
    try:
        if surface.format == "table":
            surface.say(f"run {run}")
            seen = follow(surface, run, deadline=deadline)
        else:
            seen = wait(surface, run, deadline)
            surface.structured(seen, [run])
    except WaitedTooLong:
        surface.say("waited long enough; the run goes on")
        surface.then(command_line("logs", "-f", short))
        return WAIT_OVER
    except KeyboardInterrupt:
        surface.say(f"\nthe run goes on; to end it: {command_line('cancel', short)}")
        surface.then(command_line("logs", "-f", short))
        raise
    good = seen["status"] == "COMPLETED"
    words = verdict_of(seen, surface.now()).removeprefix(seen["status"])
    surface.say(surface.style(seen["status"], f"{'✓' if good else '✗'} {seen['status']}") + words)
    surface.then(command_line("retry" if seen["status"] == "FAILED" else "runs", short))
    return 0 if good else 1


def read_payload(text: str) -> Any:
    """JSON as typed, out of a file (`@path`) or from stdin (`@-`). UsageError for anything else."""
    if text == "@-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text("utf-8")
        except OSError as error:
            raise click.UsageError(f"--payload: cannot read {text[1:]}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise click.UsageError(f"--payload: {text[1:]} is not UTF-8 at byte {error.start}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--payload is not JSON: {error}; text needs quotes inside: '\"text\"'") from None


def _accepted(made: dict[str, Any], now: datetime) -> str:
    if not made["new"]:
        return f"this key has made this run before; it is {made['status']}"
    if made["waiting"] is None:
        return "accepted"
    if made.get("holdup"):
        return "accepted, it waits"
    return f"accepted, {waits({'waiting': made['waiting'], 'attempt': 0}, now)}"


def _deadline(timeout: str | None) -> float | None:
    if timeout is None:
        return None
    try:
        return time.monotonic() + parse_duration(timeout).total_seconds()
    except InvalidInput as error:
        raise click.UsageError(f"--timeout: {error}") from None
