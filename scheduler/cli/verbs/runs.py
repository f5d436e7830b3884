"""`schedctl runs`: history, runs and skipped instants alike."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.times import absolute, read, typed_past
from scheduler.cli.verb import verb
from scheduler.cli.words import cause_of, reason_of, result_of, run_took, skip_of
from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import to_text

Shown = dict[str, Any]

MOST = 100_000
PAGE = 500


@verb("schedctl runs", "schedctl runs weekly-report --since 30d", "schedctl runs --status failed,skipped")
@click.argument("job", nargs=-1)
@click.option("--status", multiple=True, metavar="WORDS", help="pending running completed failed canceled skipped")
@click.option("--cause", multiple=True, metavar="WORDS", help="schedule catch_up manual api retry after …")
@click.option("--since", metavar="INSTANT", help="Not before this: 24h, yesterday, 2026-11-01.")
@click.option("--until", metavar="INSTANT", help="Before this.")
@click.option("-n", "--limit", type=click.IntRange(1, MOST), default=20, help="How many, newest first (default: 20).")
@click.option("--no-skips", is_flag=True, help="Without the instants that did not run.")
def runs(
    surface: Surface,
    job: tuple[str, ...],
    status: tuple[str, ...],
    cause: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int,
    no_skips: bool,
) -> int:
    """Shows what ran and what was skipped, with the reason; newest first."""
    query = {
        "job": job,
        "status": status,
        "cause": cause,
        "since": _instant(surface, since),
        "until": _instant(surface, until),
        "skips": "false" if no_skips else None,
    }
    entries, more = fetch(surface, query, limit)
    if surface.structured(entries, [one["run_id"] for one in entries if one["type"] == "run"]):
        return 0
    if not entries:
        for name in job:
            surface.daemon.get(f"/v1/jobs/{name}", {"next": 0, "runs": 0})
        surface.say("nothing in the history matches")
        surface.then(f"schedctl describe {job[0]}" if job else "schedctl list")
        return 0
    show(surface, entries, with_job=len(job) != 1)
    if more:
        surface.say(f"there are more; -n {limit * 5} shows them")
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


def show(surface: Surface, entries: list[Shown], *, with_job: bool, zone: str | None = None) -> None:
    zone = zone or surface.zone
    columns = [
        Column("RUN"),
        Column("JOB", 10),
        Column(f"TIME ({zone})"),
        Column("STATUS"),
        Column("TOOK", spare=2),
        Column("TRY", spare=3),
        Column("RESULT", 30),
        Column("CAUSE", 14, spare=1),
    ]
    rows = [_row(surface, entry, zone) for entry in entries]
    if not with_job:
        columns = [column for column in columns if column.title != "JOB"]
        rows = [[row[0], *row[2:]] for row in rows]
    surface.table(columns, rows, [entry["status"] for entry in entries])


def _row(surface: Surface, entry: Shown, zone: str) -> list[str]:
    now = surface.now()
    if entry["type"] == "skip":
        last = read(entry["last"])
        assert last is not None
        time = absolute(last, zone, now, with_zone=False, seconds=True)
        return ["-", entry["job"], time, "SKIPPED", "-", "-", skip_of(entry, zone, now), "schedule"]
    shown = read(entry["started_at"] or entry["scheduled_for"] or entry["created_at"])
    assert shown is not None
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
        absolute(shown, zone, now, with_zone=False, seconds=True),
        entry["status"],
        run_took(entry, now),
        str(entry["attempt"] or "-"),
        result,
        cause_of(entry),
    ]


def _next(entries: list[Shown]) -> str:
    runs = [one for one in entries if one["type"] == "run"]
    failed = next((one for one in runs if one["status"] == "FAILED"), None)
    chosen = failed or (runs[0] if runs else None)
    return f"schedctl logs {chosen['short_id']}" if chosen else f"schedctl describe {entries[0]['job']}"


def _instant(surface: Surface, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return to_text(typed_past(text, surface.now(), surface.zone))
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
