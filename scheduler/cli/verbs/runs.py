"""`schedctl runs`: history, runs and skipped instants alike."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.daemon import part
from scheduler.cli.run_view import behind_letter, named_run, show_run
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line
from scheduler.cli.times import column, took, typed_past
from scheduler.cli.verb import verb
from scheduler.cli.words import cause_of, reason_of, result_of, run_took, skip_of
from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.stamp import to_text

Shown = dict[str, Any]

MOST = 100_000
PAGE = 500


@verb(
    "schedctl runs",
    "schedctl runs weekly-report --since 30d",
    "schedctl runs --status failed,skipped",
    "schedctl runs 3f2a91c0",
    watched=True,
)
@click.argument("job", nargs=-1, shell_complete=complete_job)
@click.option("--status", multiple=True, metavar="WORDS", help="pending running completed failed canceled skipped")
@click.option("--failed", is_flag=True, help="The same as --status failed.")
@click.option("--cause", multiple=True, metavar="WORDS", help="schedule catch_up manual api retry after …")
@click.option("--since", metavar="INSTANT", help="Not before this: 24h, yesterday, 2026-11-01.")
@click.option("--until", metavar="INSTANT", help="Before this.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, MOST), default=20, help="How many, the last recorded (default: 20)."
)
@click.option("--no-skips", is_flag=True, help="Without the instants that did not run.")
def runs(
    surface: Surface,
    job: tuple[str, ...],
    status: tuple[str, ...],
    failed: bool,
    cause: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int,
    no_skips: bool,
) -> int:
    """Shows what ran and what was skipped, with the reason; the last recorded first. AT is the instant that a run was
    scheduled for, or when it was asked for; of skipped instants the first. DELAY: how much later it started. Given a
    run's id, or the end of one, it shows everything about that run."""
    start, end = _typed(surface, since), _typed(surface, until)
    if start is not None and end is not None and start >= end:
        raise click.UsageError(f"--since {since} is not before --until {until}: nothing can lie between; swap them")
    query = {
        "job": job,
        "status": (*status, "failed") if failed else status,
        "cause": cause,
        "since": None if start is None else to_text(start),
        "until": None if end is None else to_text(end),
        "skips": "false" if no_skips else None,
    }
    entries, more = fetch(surface, query, limit)
    if not entries:
        for name in job:
            try:
                surface.daemon.get(f"/v1/jobs/{part(name)}", {"next": 0, "runs": 0})
            except NotFound:
                run = named_run(surface, name) if len(job) == 1 else None
                if run is None:
                    raise
                return show_run(surface, run)
        if surface.structured([], []):
            return 0
        surface.say("nothing in the history matches")
        surface.then(command_line("describe", job[0]) if job else command_line("list"))
        return 0
    if surface.structured(entries, [one["run_id"] for one in entries if one["type"] == "run"]):
        return 0
    show(surface, entries, with_job=len(job) != 1)
    if more:
        surface.say(f"there are more; -n {min(limit * 5, MOST)} shows them")
    letters = {behind_letter(one) for one in entries if one["type"] == "run"}
    for letter in sorted(filter(None, letters)):
        ways = (command_line("dead-letters", what, letter) for what in ("retry", "discard"))
        surface.say(f"dead letter {letter} holds up what waits for it until {' or '.join(ways)}")
    surface.then(_next(entries))
    return 0


def fetch(surface: Surface, query: Shown, limit: int) -> tuple[list[Shown], bool]:
    """Up to `limit` entries over as many pages as it takes; whether there are more."""
    entries: list[Shown] = []
    cursor = None
    while True:
        asked = {**query, "limit": min(PAGE, limit - len(entries)), "cursor": cursor}
        page = surface.daemon.get("/v1/runs", asked)
        entries += page["entries"]
        cursor = page["cursor"]
        if cursor is None or not page["entries"] or len(entries) >= limit:
            return entries, cursor is not None


def show(surface: Surface, entries: list[Shown], *, with_job: bool) -> None:
    columns = [
        Column("RUN"),
        Column("JOB", 10),
        Column(f"AT ({surface.zone})"),
        Column("DELAY", spare=4),
        Column("STATUS"),
        Column("TOOK", spare=2),
        Column("TRY", spare=3),
        Column("RESULT", 30),
        Column("CAUSE", 14, spare=1),
    ]
    times = column(map(_instant_of, entries), surface.zone, surface.now())
    rows = [_row(surface, entry, time) for entry, time in zip(entries, times, strict=True)]
    left_out = set() if with_job else {"JOB"}
    if all(_delay(entry) == "-" for entry in entries):
        left_out.add("DELAY")
    kept = [index for index, one in enumerate(columns) if one.title not in left_out]
    surface.table(
        [columns[index] for index in kept],
        [[row[index] for index in kept] for row in rows],
        [entry["status"] for entry in entries],
    )


def _instant_of(entry: Shown) -> str:
    """The instant that it is about: for which it was scheduled, or when it was asked for; the first one skipped."""
    if entry["type"] == "skip":
        return str(entry["first"])
    return str(entry["scheduled_for"] or entry["created_at"])


def _at(entry: Shown) -> datetime:
    return datetime.fromisoformat(_instant_of(entry))


def _delay(entry: Shown) -> str:
    """How long after that it started; `-` for less than a second, and for what has not."""
    if entry["type"] == "skip" or entry["started_at"] is None:
        return "-"
    seconds = (datetime.fromisoformat(entry["started_at"]) - _at(entry)).total_seconds()
    return took(seconds) if seconds >= 1 else "-"


def _row(surface: Surface, entry: Shown, time: str) -> list[str]:
    now = surface.now()
    if entry["type"] == "skip":
        return ["-", entry["job"], time, "-", "SKIPPED", "-", "-", skip_of(entry, surface.zone, now), "schedule"]
    result = result_of(entry, now)
    if entry["error"] and entry["status"] == "PENDING":
        result += f" ({reason_of(entry)})"
    elif entry["status"] == "FAILED":
        result = reason_of(entry)
    elif entry["message"] and entry["status"] in ("RUNNING", "COMPLETED"):
        result += f": {entry['message']}"
    return [
        entry["short_id"],
        entry["job"],
        time,
        _delay(entry),
        entry["status"],
        run_took(entry, now),
        str(entry["attempt"] or "-"),
        result,
        cause_of(entry),
    ]


def _next(entries: list[Shown]) -> str:
    runs = [one for one in entries if one["type"] == "run"]
    failed = next((one for one in runs if one["status"] == "FAILED"), None)
    if failed is not None:
        return command_line("logs", failed["short_id"])
    return command_line("runs", runs[0]["short_id"]) if runs else command_line("describe", entries[0]["job"])


def _typed(surface: Surface, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return typed_past(text, surface.now(), surface.zone)
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
