"""`schedctl audit`: what should have happened, compared with what did."""

from __future__ import annotations

import re
from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line
from scheduler.cli.times import absolute, typed_past
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput
from scheduler.core.instants import relative
from scheduler.core.stamp import to_text

Shown = dict[str, Any]

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
LONG = 300.0
"""Seconds that a recomputation may take."""


@verb("schedctl audit", "schedctl audit --since 7d", "schedctl audit weekly-report --since 30d")
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--since", metavar="INSTANT", help="From when (default: 24h ago): 7d, yesterday, 2026-11-01.")
@click.option("--job", "named", metavar="JOB", shell_complete=complete_job, help="The same as JOB.")
@click.option("--all", "everything", is_flag=True, help="Also jobs of which nothing was expected.")
def audit(surface: Surface, job: str | None, since: str | None, named: str | None, everything: bool) -> int:
    """Recomputes which instants of JOB (default: of all) were due, and finds each in the ledger: it ran, or was skipped
    for a reason.

    Exit 1 if anything is unaccounted for."""
    if job is not None and named not in (None, job):
        raise click.UsageError(f"{job} or {named}? name one job, or none for all")
    job = job or named
    start = None if since is None else _start(surface, since)
    report = surface.daemon.get("/v1/audit", {"since": start, "job": job}, timeout=LONG)
    code = 0 if report["clean"] else 1
    if surface.structured(report, [one["job"] for one in report["jobs"] if not one["clean"]]):
        return code
    shown = [one for one in report["jobs"] if everything or one["expected"] or not one["clean"] or job]
    columns = [Column("JOB", 12), Column("EXPECTED"), Column("RAN"), Column("SKIPPED", 8), Column("UNACCOUNTED")]
    if shown:
        surface.table(columns, [_row(one) for one in shown])
    _details(surface, report)
    surface.say(_sum(surface, report))
    wrong = next((one["job"] for one in report["jobs"] if not one["clean"]), None)
    surface.then(command_line("runs", wrong) if wrong else command_line("status"))
    return code


def _start(surface: Surface, since: str) -> str:
    now = surface.now()
    try:
        start = typed_past(since, now, surface.zone)
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
    if start >= now:
        raise click.UsageError(
            f"--since {since} is {relative(start, now=now)}: what is still to come cannot be audited; "
            f"write how long ago (7d), or an instant before {absolute(now, surface.zone, now)}"
        )
    return to_text(start)


def _row(one: Shown) -> list[str]:
    skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(one["skipped"].items()) if count)
    return [one["job"], str(one["expected"]), str(one["ran"]), skipped or "-", str(one["unaccounted_count"] or "-")]


def _details(surface: Surface, report: Shown) -> None:
    for one in report["jobs"]:
        for word, instants in (
            ("unaccounted", one["unaccounted"]),
            ("twice, or not in the schedule", one["surplus"]),
        ):
            for instant in instants:
                surface.out(f"{one['job']}: {surface.when(instant)} {word}")
        for reason in one["not_recomputable"]:
            told = _INSTANT.sub(lambda found: surface.when(found[0]), reason)
            surface.say(f"{one['job']}: not recomputable: {told}")


def _sum(surface: Surface, report: Shown) -> str:
    expected = sum(one["expected"] for one in report["jobs"])
    ran = sum(one["ran"] for one in report["jobs"])
    skipped = sum(sum(one["skipped"].values()) for one in report["jobs"])
    missing = sum(one["unaccounted_count"] for one in report["jobs"])
    period = f"{surface.when(report['since'])} to {surface.when(report['until'])}"
    mark = "✓" if report["clean"] else "✗"
    return f"{mark} {period}: {expected} expected = {ran} ran + {skipped} skipped + {missing} unaccounted"
