"""One run on one screen."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from scheduler.cli.daemon import part
from scheduler.cli.sheet import line
from scheduler.cli.surface import Surface
from scheduler.cli.table import Column
from scheduler.cli.text import command_line, counted, plain
from scheduler.cli.times import column, took
from scheduler.cli.words import cause_of, dead_letter, failure, verdict_of
from scheduler.core.errors import NotFound
from scheduler.core.model import ELSEWHERE

Shown = dict[str, Any]

_ID = re.compile(r"[0-9a-f-]{4,36}", re.ASCII)


def named_run(surface: Surface, text: str) -> Shown | None:
    """The run whose id is `text` or ends with it; None if there is none."""
    if _ID.fullmatch(text) is None:
        return None
    try:
        return dict(surface.daemon.get(f"/v1/runs/{part(text)}"))
    except NotFound:
        return None


def show_run(surface: Surface, run: Shown) -> int:
    """Everything about a run: how it went, who wanted it and why, its attempts, its result in full, where its output
    is, and what to type next."""
    if surface.structured(run, [run["run_id"]]):
        return 0
    head = f"{run['job']} {run['short_id']}: {verdict_of(run, surface.now())}"
    surface.out(surface.style(run["status"], head))
    for label, text in _facts(surface, run):
        line(surface, label, text)
    _attempts(surface, run)
    for title in ("payload", "checkpoint", "result"):
        if run[title] is not None or (title == "payload" and run["has_payload"]):
            surface.out(f"\n{title.capitalize()}")
            surface.out(json.dumps(run[title], ensure_ascii=False, indent=2))
    surface.then(_next(run))
    return 0


def _facts(surface: Surface, run: Shown) -> list[tuple[str, str]]:
    instants = [
        ("Scheduled for", run["scheduled_for"]),
        ("Created", run["created_at"]),
        ("Started", run["started_at"]),
        ("Finished", run["finished_at"]),
    ]
    facts = [("Run", run["run_id"]), ("Cause", cause_of(run))]
    facts += [(label, surface.when(instant)) for label, instant in instants if instant is not None]
    if run["retry_of"]:
        facts.append(("Retry of", f"{run['retry_of'][-8:]}   {command_line('runs', run['retry_of'][-8:])}"))
    facts += [("Retried by", f"{one[-8:]}   {command_line('runs', one[-8:])}") for one in run["retried_by"]]
    if run["progress"] is not None or run["message"]:
        share = "" if run["progress"] is None else f"{run['progress']:.0f} %"
        facts.append(("Progress", ": ".join(one for one in (share, run["message"] or "") if one)))
    letter = dead_letter(run)
    if letter and not run["retried_by"]:
        facts.append(("Payload", letter))
        if run["discarded_at"] is not None:
            facts.append(("Discarded", surface.when(run["discarded_at"])))
    queue = run["queue"] + (f", priority {run['priority']}" if run["priority"] else "")
    facts += [("Queue", queue), ("Lock", run["lock"] or "none: it may overlap")]
    if run["attempt"]:
        facts.append(("Output", command_line("logs", run["short_id"])))
    return facts


def _attempts(surface: Surface, run: Shown) -> None:
    attempts = run["attempts"]
    if not attempts:
        return
    hosts = {node["id"]: node["host"] for node in surface.daemon.get("/v1/nodes")["nodes"]}
    zone = surface.zone
    times = column([one["started_at"] for one in attempts], zone, surface.now())
    surface.out(f"\n{counted(len(attempts), 'attempt').capitalize()}")
    columns = [
        Column("TRY"),
        Column(f"STARTED ({zone})"),
        Column("TOOK"),
        Column("OUTCOME", 20, wrap=True),
        Column("LEFT BEHIND", spare=2),
        Column("NODE", spare=1),
        Column("FENCE", spare=3),
    ]
    rows = [
        [
            str(one["number"]),
            time,
            took(one["duration_s"]),
            _outcome(one),
            counted(one["left"], "process", "processes") if one["left"] else "-",
            _node(one, hosts),
            str(one["fence"]),
        ]
        for one, time in zip(attempts, times, strict=True)
    ]
    surface.table(columns, rows)


def _node(attempt: Shown, hosts: Mapping[str, str]) -> str:
    """Which node it was on, and where that is, as long as that is remembered."""
    node = attempt["node"]
    if not node:
        return "-"
    return f"{node[-8:]} {hosts[node]}" if node in hosts else str(node[-8:])


def _outcome(attempt: Shown) -> str:
    word = attempt["outcome"]
    if word in (None, "completed", "canceled", "snoozed"):
        return {None: "running", "completed": "ok"}.get(word, str(word))
    error = plain(attempt["error"] or "")
    return failure(attempt) + (f": {error}" if error and not error.startswith("exit code") else "")


def behind_letter(run: Shown) -> str | None:
    """The end of the id of the dead letter that a run waits for, if it does."""
    waiting = run["waiting"]
    return str(waiting["holder_run"])[-8:] if waiting and waiting["holder_dead"] else None


def _next(run: Shown) -> str:
    short = run["short_id"]
    letter = behind_letter(run)
    if letter is not None:
        return command_line("dead-letters", "retry", letter)
    if run["status"] in ("RUNNING", "PENDING"):
        return command_line("logs", "-f", short)
    if run["status"] == "FAILED" and not run["retried_by"] and run["node"] != ELSEWHERE:
        return command_line("retry", short)
    return command_line("logs", short) if run["attempt"] else command_line("runs", run["job"])
