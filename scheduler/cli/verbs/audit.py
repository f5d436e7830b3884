"""`schedctl audit`: what should have happened, compared with what did."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.times import absolute, read, typed_past
from scheduler.cli.verb import verb
from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import to_text

Shown = dict[str, Any]

LONG = 300.0
"""Seconds that a recomputation may take."""


@verb("schedctl audit", "schedctl audit --since 7d", "schedctl audit --since 30d --job weekly-report")
@click.option("--since", metavar="INSTANT", help="From when (default: 24h ago): 7d, yesterday, 2026-11-01.")
@click.option("--job", metavar="JOB", help="Only this job.")
@click.option("--all", "everything", is_flag=True, help="Also jobs of which nothing was expected.")
def audit(surface: Surface, since: str | None, job: str | None, everything: bool) -> int:
    """Recomputes which instants were due, and finds each in the ledger: it ran, or was skipped for a reason.

    Exit 1 if anything is unaccounted for."""
    try:
        start = None if since is None else to_text(typed_past(since, surface.now(), surface.zone))
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
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
    surface.then(f"schedctl runs {wrong}" if wrong else "schedctl status")
    return code


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
                surface.out(f"{one['job']}: {instant} {word}")
        for reason in one["not_recomputable"]:
            surface.say(f"{one['job']}: not recomputable: {reason}")


def _sum(surface: Surface, report: Shown) -> str:
    expected = sum(one["expected"] for one in report["jobs"])
    ran = sum(one["ran"] for one in report["jobs"])
    skipped = sum(sum(one["skipped"].values()) for one in report["jobs"])
    missing = sum(one["unaccounted_count"] for one in report["jobs"])
    since, until = read(report["since"]), read(report["until"])
    assert since is not None
    assert until is not None
    period = f"{absolute(since, surface.zone, surface.now())} to {absolute(until, surface.zone, surface.now())}"
    mark = "✓" if report["clean"] else "✗"
    return f"{mark} {period}: {expected} expected = {ran} ran + {skipped} skipped + {missing} unaccounted"
