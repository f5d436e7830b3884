"""`schedctl describe`: everything about one job on one screen."""

from __future__ import annotations

from typing import Any

import click

from scheduler.cli.complete import complete_job
from scheduler.cli.daemon import part
from scheduler.cli.run_view import named_run, show_run
from scheduler.cli.sheet import digest, line, written
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted, plain, width
from scheduler.cli.times import read, took
from scheduler.cli.verb import verb
from scheduler.cli.verbs.next_times import time_rows
from scheduler.cli.verbs.runs import show as show_runs
from scheduler.cli.words import pause_of, result_of, skip_of
from scheduler.core.errors import NotFound
from scheduler.core.model import ELSEWHERE

Shown = dict[str, Any]

ACTIONS = ("command", "http", "call", "compensate", "external")


@verb("schedctl describe weekly-report", "schedctl describe weekly-report -o yaml", "schedctl describe 3f2a91c0")
@click.argument("job", shell_complete=complete_job)
@click.option("-n", "--next", "following", type=click.IntRange(0, 100), default=5, help="Coming times (default: 5).")
@click.option("--runs", "recent", type=click.IntRange(0, 100), default=5, help="Last runs (default: 5).")
def describe(surface: Surface, job: str, following: int, recent: int) -> int:
    """Shows JOB: state, schedule in words, coming times, deadline, last runs and last result, and its definition with
    its policies. Given a run's id, or the end of one, it shows that run."""
    try:
        found = surface.daemon.get(f"/v1/jobs/{part(job)}", {"next": following, "runs": recent})["job"]
    except NotFound:
        run = named_run(surface, job)
        if run is None:
            raise
        return show_run(surface, run)
    if surface.structured(found, [found["name"]]):
        return 0
    _head(surface, found)
    _times(surface, found)
    if found["recent"]:
        surface.out("\nLast runs")
        show_runs(surface, found["recent"], with_job=False)
    _flips(surface, found["flips"])
    _result(surface, found["last_result"])
    _habits(surface, found)
    _definition(surface, found["definition"])
    surface.then(_next(found))
    return 0


def _head(surface: Surface, job: Shown) -> None:
    now, zone = surface.now(), job["timezone"]
    line(surface, "", job["name"], 0)
    if job["description"]:
        line(surface, "", job["description"], 2)
    line(surface, "State", _state(surface, job), word=job["state"])
    if job["schedule"]:
        line(surface, "Schedule", " | ".join(job["schedule"]) + f"  {zone or ''}")
        if job["schedule_in_words"]:
            line(surface, "", job["schedule_in_words"])
    if job["definition"].get("on_event"):
        line(surface, "Events", _events(job["definition"]["on_event"]))
    line(surface, "Expected" if job["external"] else "Next run", _coming(surface, job, zone))
    line(
        surface, "Deadline", surface.when(job["deadline_at"]) if job["deadline_at"] else "none: nothing is expected now"
    )
    line(surface, "Last success", surface.when(job["last_success_at"]) if job["last_success_at"] else "never")
    if job["last_failure_at"]:
        times = f", {job['consecutive_failures']} in a row" if job["consecutive_failures"] else ""
        line(surface, "Last failure", surface.when(job["last_failure_at"]) + times)
    if job["problem"] is not None and job["problem"]["run_id"] is not None:
        _to_blame(surface, job, job["problem"])
    for run in job["running"]:
        text = f"{run['short_id']} since {surface.when(run['started_at'])}, {result_of(run, now)}"
        if run["node"] is not None and run["node"] != ELSEWHERE:
            text += f" on node {run['node'][-8:]}"
        line(surface, "Running", text + (f": {run['message']}" if run["message"] else ""))
    if job["waiting"]:
        line(surface, "Waiting", counted(job["waiting"], "run"))
    if job["last_skip"]:
        skip = job["last_skip"]
        line(surface, "Last skip", f"{surface.when(skip['last'])}, {skip_of(skip, surface.zone, now)}")
    if job["paused_source"] is not None:
        line(surface, "Pause", f"its source is paused: {job['paused_source']} holds its events")
    for pause in (job["pause"], job["upcoming_pause"]):
        if pause is not None:
            begins = "" if pause is job["pause"] else f"from {surface.when(pause['from'])}: "
            line(surface, "Pause", begins + pause_of(pause, surface.zone, now))


def _coming(surface: Surface, job: Shown, zone: str | None) -> str:
    """Its next instant, and whether a pause will be in the way of it."""
    if not job["enabled"]:
        return "- (removed)" if job["state"] == "removed" else "- (disabled)"
    coming, pause = read(job["next_run_at"]), job["pause"]
    text = surface.when(job["next_run_at"], zone)
    if coming is None or pause is None:
        return text
    until = read(pause["until"])
    return text if until is not None and until <= coming else f"{text}; skipped unless it is resumed before"


def _to_blame(surface: Surface, job: Shown, problem: Shown) -> None:
    """The run that failed, as `status` tells it, and what to type about that."""
    run = problem["run_id"][-8:]
    if problem["kind"] == "late":
        return
    line(surface, "Failed run", run + (f": {plain(problem['error'])}" if problem["error"] else ""))
    if problem["last_line"] and problem["last_line"] != problem["error"]:
        line(surface, "", f"last line: {plain(problem['last_line'])}")
    line(surface, "", f"→ {command_line('logs', run)}")
    if not job["external"]:
        line(surface, "", f"→ {command_line('retry', run)}")


def _state(surface: Surface, job: Shown) -> str:
    says = {
        "missed": "missed: no success by its deadline",
        "late": "late: past its deadline, still running",
        "failing": f"failing: {_failures(job['consecutive_failures'])}",
        "alarm": f"alarm: {job['alarm']}",
        "disabled": "disabled: only run-now runs it",
        "removed": "removed from jobs.yaml; its history is kept",
        "unknown": "unknown: word of it may have been lost while no daemon listened",
        "new": "new: it has not succeeded yet",
    }
    since = f", since {surface.when(job['state_since'])}" if job["state_since"] else ""
    word: str = job["state"]
    return says.get(word, word) + since


def _failures(count: int) -> str:
    return "its last run failed" if count == 1 else f"its last {count} runs failed"


def _times(surface: Surface, job: Shown) -> None:
    if not job["next"]:
        return
    (zone, *utc), rows = time_rows(surface, job["next"])
    surface.out("\nNext times")
    surface.table(
        [Column(f"  {zone}"), *(Column("UTC") for _ in utc), Column("LEFT"), Column("NOTE", 12)],
        [["  " + one, *rest] for one, *rest in rows],
    )


def _flips(surface: Surface, flips: list[Shown]) -> None:
    """What it changed to, newest first, and why."""
    if not flips:
        return
    surface.out("\nChanges of state")
    rows = [
        [
            f"  {surface.when(one['at'])}",
            f"{one['was']} → {one['state']}",
            _CAUSES[one["cause"]],
            "-" if one["run_id"] is None else one["run_id"][-8:],
        ]
        for one in flips
    ]
    states = [one["state"] for one in flips]
    surface.table([Column("  SINCE"), Column("STATE"), Column("WHY", 12), Column("RUN")], rows, states)


_CAUSES = {
    "deadline": "its deadline passed",
    "failure": "a run failed",
    "success": "a run succeeded",
    "ack": "somebody knows of the miss",
    "change": "what is expected of it was changed",
    "removal": "removed from jobs.yaml",
    "outage": "no daemon listened",
}


def _result(surface: Surface, run: Shown | None) -> None:
    if run is None:
        return
    command = command_line("runs", run["short_id"])
    surface.out(f"\nLast result, {surface.when(run['finished_at'])}; in full: {command}")
    digest(surface, run["result"])


def _habits(surface: Surface, job: Shown) -> None:
    """How long its runs take, and lines to paste where a limit is far off."""
    habits = job["habits"]
    if habits is None:
        return
    lengths = ", ".join(f"{word} {took(habits[f'{word}_s'])}" for word in ("p50", "p95", "longest"))
    surface.out(f"\nIts last {habits['runs']} completed runs took: {lengths}")
    for one in habits["advice"]:
        surface.out(f"  {one['key']}: {one['now']} is far off, {one['why']}; a line for jobs.yaml:")
        surface.out(f"    {one['key']}: {one['value']}")


def _events(on_event: Shown) -> str:
    """Which events start it, in words."""
    said = f"{', '.join(on_event['types'])} of {on_event['source']}" if on_event.get("types") else on_event["source"]
    if on_event.get("where"):
        said += f", where {on_event['where']}"
    return f"{said}, one at a time per subject" if on_event.get("order") == "subject" else said


def _definition(surface: Surface, definition: Shown) -> None:
    """What it does and its policies; what says nothing (no value, an empty list) is left out."""
    surface.out("\nDefinition")
    said = {key: value for key, value in definition.items() if key != "description" and value not in (None, "", [], {})}
    first = [key for key in ("schedule", "timezone", "day_match", "on_event", "after", *ACTIONS) if key in said]
    size = max(map(width, said), default=0) + 4
    for key in dict.fromkeys([*first, *said]):
        line(surface, f"  {key}", written(said[key]), size)


def _next(job: Shown) -> str:
    name = job["name"]
    if job["running"]:
        return command_line("logs", "-f", name)
    if job["state"] == "alarm":
        # Its definition is above; a file in force gives it another chance.
        return command_line("reload")
    if job["problem"] is not None and job["problem"]["run_id"] is not None:
        run = job["problem"]["run_id"][-8:]
        # Of what was never started there is only the error, which stands above.
        started = job["problem"]["command"] != command_line("describe", name)
        return command_line("logs", run) if started else command_line("check")
    if job["state"] == "missed" and job["last"] is not None:
        return command_line("runs", name)
    if job["pause"] is not None:
        return command_line("resume", name)
    if job["external"]:
        return command_line("runs", name)
    return command_line("run-now", name, "--wait")
