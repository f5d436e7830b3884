"""`schedctl backfill`: instants of the past, run after all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import both, typed_past
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import to_text

LONG = 120.0
"""Seconds that thousands of instants may take."""

FEW = 10
"""Instants that are left out and named one by one."""


@verb(
    "schedctl backfill weekly-report --dry-run",
    'schedctl backfill backup-db --from 3d --until yesterday --reason "disk full"',
)
@click.argument("job")
@click.option(
    "--from",
    "--since",
    "since",
    metavar="INSTANT",
    help="The first instant: 3d, 2026-11-01 (default: since its last success).",
)
@click.option("--until", "--to", metavar="INSTANT", help="The last one (default: now).")
@click.option("--max", "most", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Refuse more.")
@click.option("-n", "--dry-run", is_flag=True, help="Only show which would run.")
@click.option("--reason", default="", metavar="TEXT", help="Kept with each run.")
def backfill(
    surface: Surface, job: str, since: str | None, until: str | None, most: int, dry_run: bool, reason: str
) -> int:
    """Makes a run for every instant of JOB's schedule in that time that has neither completed nor an unfinished run,
    oldest first. They wait for each other as the job's runs always do."""
    body = {
        "from": None if since is None else _instant(surface, since),
        "until": None if until is None else _instant(surface, until),
        "max": most,
        "dry_run": dry_run,
        "reason": reason,
    }
    done = surface.daemon.post(f"/v1/jobs/{part(job)}/backfill", body, timeout=LONG)
    if surface.structured(done, [one["run_id"] or one["scheduled_for"] for one in done["runs"]]):
        return 0
    if done["runs"]:
        _table(surface, done)
    _left_out(surface, done["left_out"])
    count = counted(len(done["runs"]), "run")
    surface.say(f"{job}: {count} would be made; nothing was changed" if dry_run else f"{job}: {count} made")
    if dry_run and done["runs"]:
        surface.then(_again(job, since, until, most))
    else:
        surface.then(f"schedctl runs {job}")
    return 0


def _table(surface: Surface, done: dict[str, Any]) -> None:
    columns = [Column("FOR", 20), Column("RUN")]
    rows = [
        [both(one["scheduled_for"], surface.zone, surface.now()), (one["run_id"] or "-")[-8:]] for one in done["runs"]
    ]
    surface.table(columns, rows)


def _left_out(surface: Surface, instants: list[dict[str, Any]]) -> None:
    """Each by itself while they are few; else how many for which reason."""
    if len(instants) > FEW:
        for why, count in Counter(one["why"] for one in instants).items():
            surface.say(f"{counted(count, 'instant')} left out, {why}")
        return
    for one in instants:
        run = f" (run {one['run_id'][-8:]})" if one["run_id"] else ""
        surface.say(f"{both(one['scheduled_for'], surface.zone, surface.now())}: left out, {one['why']}{run}")


def _again(job: str, since: str | None, until: str | None, most: int) -> str:
    words = ["backfill", job]
    if since is not None:
        words += ["--from", since]
    if until is not None:
        words += ["--until", until]
    if most != 100:
        words += ["--max", str(most)]
    return command_line(*words)


def _instant(surface: Surface, text: str) -> str:
    try:
        return to_text(typed_past(text, surface.now(), surface.zone))
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
