"""`schedctl describe`: everything about one job on one screen."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.text import width
from scheduler.cli.times import both, zone_or_utc
from scheduler.cli.verb import verb
from scheduler.cli.verbs.next_times import time_rows
from scheduler.cli.verbs.runs import show as show_runs
from scheduler.cli.words import pause_of, result_of, skip_of

Shown = dict[str, Any]

ACTIONS = ("command", "http", "call", "compensate")
LABEL = 14
"""Columns of the labels on the left."""


@verb("schedctl describe weekly-report", "schedctl describe weekly-report -o yaml")
@click.argument("job")
@click.option("-n", "--next", "following", type=click.IntRange(0, 100), default=5, help="Coming times (default: 5).")
@click.option("--runs", "recent", type=click.IntRange(0, 100), default=5, help="Last runs (default: 5).")
def describe(surface: Surface, job: str, following: int, recent: int) -> int:
    """Shows JOB: state, schedule in words, coming times, deadline, last runs, and its definition with its policies."""
    found = surface.daemon.get(f"/v1/jobs/{part(job)}", {"next": following, "runs": recent})["job"]
    if surface.structured(found, [found["name"]]):
        return 0
    _head(surface, found)
    _times(surface, found)
    if found["recent"]:
        surface.out("\nLast runs")
        show_runs(surface, found["recent"], with_job=False, zone=found["timezone"])
    _definition(surface, found["definition"])
    surface.then(_next(found))
    return 0


def _head(surface: Surface, job: Shown) -> None:
    now, zone = surface.now(), job["timezone"]
    surface.out(job["name"] + (f": {job['description']}" if job["description"] else ""))
    _line(surface, "State", _state(surface, job))
    if job["schedule"]:
        words = (job["schedule_in_words"] or "").splitlines()
        _line(surface, "Schedule", " | ".join(job["schedule"]) + f"  {zone or ''}")
        for word in words:
            _line(surface, "", word)
    _line(surface, "Next run", both(job["next_run_at"], zone, now) if job["enabled"] else "- (disabled)")
    _line(surface, "Deadline", _deadline(surface, job))
    _line(surface, "Last success", both(job["last_success_at"], zone, now) if job["last_success_at"] else "never")
    if job["last_failure_at"]:
        times = f", {job['consecutive_failures']} in a row" if job["consecutive_failures"] else ""
        _line(surface, "Last failure", both(job["last_failure_at"], zone, now) + times)
    for run in job["running"]:
        text = f"{run['short_id']} since {both(run['started_at'], zone, now)}, {result_of(run, now)}"
        _line(surface, "Running", text + (f": {run['message']}" if run["message"] else ""))
    if job["waiting"]:
        _line(surface, "Waiting", f"{job['waiting']} runs")
    if job["last_skip"]:
        _line(
            surface,
            "Last skip",
            skip_of(job["last_skip"], zone, now) + f", {both(job['last_skip']['last'], zone, now)}",
        )
    for pause in (job["pause"], job["upcoming_pause"]):
        if pause is not None:
            begins = "" if pause is job["pause"] else f"from {both(pause['from'], zone, now)}: "
            _line(surface, "Pause", begins + pause_of(pause, zone, now))


def _state(surface: Surface, job: Shown) -> str:
    says = {
        "missed": "missed: no success by its deadline",
        "late": "late: past its deadline, still running",
        "failing": f"failing: {_failures(job['consecutive_failures'])}",
        "alarm": f"alarm: {job['alarm']}",
        "disabled": "disabled: only run-now runs it",
        "removed": "removed from jobs.yaml; its history is kept",
    }
    return surface.style(job["state"], says.get(job["state"], job["state"]))


def _failures(count: int) -> str:
    return "its last run failed" if count == 1 else f"its last {count} runs failed"


def _deadline(surface: Surface, job: Shown) -> str:
    if job["deadline_at"] is None:
        return "none: nothing is expected of it now"
    return both(job["deadline_at"], job["timezone"], surface.now())


def _times(surface: Surface, job: Shown) -> None:
    if not job["next"]:
        return
    zone = zone_or_utc(job["timezone"])[1]
    surface.out(f"\nNext times ({zone}, UTC)")
    for local, utc, left, remark in time_rows(job["next"], surface.now(), zone):
        surface.out(f"  {local}  {utc}  {left}" + (f"  {remark}" if remark else ""))


def _definition(surface: Surface, definition: Shown) -> None:
    """What it does and its policies; what says nothing (no value, an empty list) is left out."""
    surface.out("\nDefinition")
    said = {key: value for key, value in definition.items() if key != "description" and value not in (None, "", [], {})}
    first = [key for key in ("schedule", "timezone", "day_match", *ACTIONS) if key in said]
    size = max(map(width, said), default=0) + 4
    for key in dict.fromkeys([*first, *said]):
        _line(surface, f"  {key}", written(said[key]), size)


def written(value: Any) -> str:
    """A value of a definition on one line, as jobs.yaml could have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ({}, [], ""):
        return "-"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(one) for one in value) + "]"
    return str(value)


def _line(surface: Surface, label: str, text: str, size: int = LABEL) -> None:
    """A labelled line, folded at the terminal's width."""
    total = surface.columns
    lines = [text] if total is None else fold(text, max(20, total - size))
    for index, line in enumerate(lines):
        surface.out(((label if index == 0 else "").ljust(size) + line).rstrip())


def fold(text: str, columns: int) -> list[str]:
    """`text` in lines of at most `columns`, broken between words where that is possible."""
    lines = [""]
    for word in text.split(" "):
        candidate = f"{lines[-1]} {word}" if lines[-1] else word
        if width(candidate) <= columns or not lines[-1]:
            lines[-1] = candidate
        else:
            lines.append(word)
    return lines


def _next(job: Shown) -> str:
    if job["running"]:
        return f"schedctl logs -f {job['name']}"
    if job["state"] in ("failing", "missed", "alarm") and job["last"] is not None:
        return f"schedctl logs {job['name']}"
    if job["pause"] is not None:
        return f"schedctl resume {job['name']}"
    return f"schedctl run-now {job['name']} --wait"
