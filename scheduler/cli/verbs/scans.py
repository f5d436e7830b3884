"""`schedctl scans`: where each compensation scan stands, and what the last ones came to."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted
from scheduler.cli.times import ago
from scheduler.cli.verb import verb
from scheduler.core.stamp import from_text

Shown = dict[str, Any]

HOLES = 10
"""Holes that are told one by one."""
ASIDES = 10
"""Items that nobody could read, that are told one by one."""
BEGINS = 160
"""Characters of such an item."""


@verb("schedctl scans", "schedctl scans payments-scan", "schedctl scans -o json", watched=True)
@click.argument("job", required=False, shell_complete=complete_job)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Reports of JOB, and unreadable items."
)
def scans(surface: Surface, job: str | None, limit: int) -> int:
    """Shows where scans stand: up to when everything is settled, what the last one found, what cannot be proven.

    With JOB: the reports of its last scans."""
    found = surface.daemon.get("/v1/scans", {"job": job, "limit": limit})
    if surface.structured(found, [one["job"] for one in found["scans"]]):
        return 0
    if job is None:
        _standing(surface, found["scans"])
    else:
        _history(surface, found["reports"])
        tell_asides(surface, found["asides"])
    tell_holes(surface, found["holes"])
    if not found["scans"] and job is None:
        surface.say("no job scans: one with `compensate` does")
        surface.then("schedctl init source NAME")
    elif job is None:
        surface.then(command_line("scans", found["scans"][0]["job"]))
    else:
        surface.then(command_line("scan", job, "--dry-run"))
    return 0


def _standing(surface: Surface, shown: list[Shown]) -> None:
    columns = [
        Column("SCAN", 24),
        Column("SOURCE", 8, spare=5),
        Column("STATE", 12),
        Column("SETTLED UNTIL"),
        Column("LAST SCAN"),
        Column("LISTED", spare=4),
        Column("FOUND"),
        Column("UNLISTED", spare=3),
        Column("MISS RATE", spare=1),
    ]
    now = surface.now()
    rows: list[list[str]] = []
    words: list[str] = []
    for one in shown:
        last, word = one["last"], _word(one)
        words.append("failing" if last is not None and not last["complete"] and not one["under_way"] else "ok")
        numbers = ["-"] * 4
        if last is not None:
            numbers = [str(last["listed"]), str(last["injected"]), str(last["unlisted"] or "-"), rate(last)]
        ended = None if last is None else last["ended_at"]
        rows.append([one["job"], one["source"], word, ago(one["watermark"], now), ago(ended, now), *numbers])
    surface.table(columns, rows, words)


def _word(one: Shown) -> str:
    if one["under_way"] is not None:
        return f"page {one['under_way']['pages'] + 1}"
    if one["last"] is None:
        return "never"
    return state(one["last"])


def _history(surface: Surface, reports: list[Shown]) -> None:
    columns = [
        Column("RUN"),
        Column("ENDED"),
        Column("STATE"),
        Column("LISTED"),
        Column("KNOWN", spare=2),
        Column("FOUND"),
        Column("TOO YOUNG", spare=3),
        Column("UNREADABLE", spare=3),
        Column("UNLISTED", spare=3),
        Column("PAGES", spare=4),
        Column("429S", spare=4),
        Column("WHY", 12, spare=1),
    ]
    now = surface.now()
    rows = [
        [
            one["run"][-8:],
            ago(one["ended_at"], now),
            state(one),
            *(str(one[name]) for name in ("listed", "known", "injected", "too_young", "undecodable")),
            str(one["unlisted"] or "-"),
            str(one["pages"]),
            str(one["throttled"] or "-"),
            one["why"] or "-",
        ]
        for one in reports
    ]
    surface.table(columns, rows, ["ok" if one["complete"] else "failing" for one in reports])


def state(report: Shown) -> str:
    """`complete`, `incomplete, 2 unreadable, dry`."""
    words = ["complete" if report["complete"] else "incomplete"]
    if report["undecodable"]:
        words.append(f"{report['undecodable']} unreadable")
    return ", ".join([*words, "dry"] if report["dry_run"] else words)


def rate(report: Shown) -> str:
    """The share of events whose webhook had not come."""
    share = report["miss_rate"]
    return "-" if share is None else f"{share:.1%}"


def tell_asides(surface: Surface, asides: list[Shown]) -> None:
    """What lists held that is no event as far as anybody could read it."""
    for aside in asides[:ASIDES]:
        when = f"of {aside['occurred_at']}" if aside["occurred_at"] else "of unknown time"
        text, more = aside["begins"][:BEGINS], aside["length"] > BEGINS
        surface.say(f"unreadable item {when}: {aside['why']}: {' '.join(text.split())}{'…' if more else ''}")
    if len(asides) > ASIDES:
        command = command_line("scans", asides[0]["job"], "--limit", "100", "-o", "json")
        surface.say(f"… and older ones; all that are kept: {command}")


def tell_holes(surface: Surface, holes: list[Shown]) -> None:
    for hole in holes[-HOLES:]:
        length = from_text(hole["end"]) - from_text(hole["start"])
        surface.say(
            f"hole in {hole['source']}: {hole['start']} to {hole['end']} ({length}) cannot be proven complete: "
            f"{hole['why']}"
        )
    if len(holes) > HOLES:
        surface.say(f"… and {counted(len(holes) - HOLES, 'older hole')}")
