"""Runs, skips and pauses in the few words that fit into a line."""

from __future__ import annotations

import signal
from datetime import datetime
from typing import Any

from scheduler.cli.times import absolute, ago, read, took

Shown = dict[str, Any]

_BY_CAUSE = {
    "schedule": "schedule",
    "catch_up": "catch-up",
    "backfill": "backfill",
    "manual": "by hand",
    "api": "API",
    "event": "event",
    "replay": "replay",
    "after": "after a job",
    "retry": "retry",
}


def result_of(run: Shown, now: datetime) -> str:
    """How it ended, or what it does now: `ok`, `exit 1`, `killed (SIGKILL)`, `running 40 %`, `waits for lock x`."""
    status, reason = run["status"], run["reason"]
    if status == "COMPLETED":
        return "ok"
    if status == "RUNNING":
        progress = run.get("progress")
        return "running" if progress is None else f"running {progress:.0f} %"
    if status == "PENDING":
        return waits(run, now)
    if status == "CANCELED":
        return "canceled"
    if status == "SKIPPED":
        return f"skipped: {reason}"
    return failure(run)


def fate_of(run: Shown, now: datetime) -> str:
    """How it ended, with everything that is known about a failure."""
    return reason_of(run) if run["status"] == "FAILED" else result_of(run, now)


def failure(run: Shown) -> str:
    """Why a run or an attempt failed."""
    reason = str(run.get("reason") or run.get("outcome") or "failed")
    if run.get("exit_code") is not None and reason == "exit":
        return f"exit {run['exit_code']}" + _meaning(run["exit_code"])
    if run.get("signal") is not None and reason == "signal":
        return f"killed ({signal_name(run['signal'])})"
    return {"timeout": "timed out", "lost": "lost with its node", "spawn": "could not start"}.get(reason, reason)


def reason_of(run: Shown) -> str:
    """Why it failed, in full: what the daemon said, unless that is only the exit code again."""
    error = str(run.get("error") or "")
    return failure(run) if not error or error.startswith("exit code") else error


def waits(run: Shown, now: datetime) -> str:
    """What a PENDING run waits for."""
    waiting = run.get("waiting")
    if not waiting:
        word = run.get("waits_for")
        if word == "time":
            return f"{'retries' if run['attempt'] else 'starts'} {ago(run['not_before'], now)}"
        return {"lock": "waits for its lock", "pause": "waits: paused"}.get(word or "", "ready")
    if waiting["kind"] == "lock":
        holder = waiting["holder_run"]
        kind, _, name = (waiting["lock"] or "").partition(":")
        if kind == "job":
            return f"waits for run {holder[-8:]}" if holder else "waits for its turn"
        return f"waits for lock {name}" + (f", held by {holder[-8:]} ({waiting['holder_job']})" if holder else "")
    if waiting["kind"] == "pause":
        return "waits: paused"
    if waiting["kind"] == "time":
        return f"{'retries' if run['attempt'] else 'starts'} {ago(waiting['until'], now)}"
    return f"ready, {waiting['ahead']} before it in queue {waiting['queue']}" if waiting["ahead"] else "ready"


def cause_of(entry: Shown) -> str:
    """`schedule`, `by hand (ana): "reason"`."""
    words = _BY_CAUSE.get(entry["cause"]) or str(entry["cause"])
    if entry.get("author"):
        words += f" ({entry['author']})"
    if entry.get("note"):
        words += f': "{entry["note"]}"'
    return words


def skip_of(skip: Shown, zone: str | None, now: datetime) -> str:
    """`skipped 12×: overlap (02:00 … 02:11)`."""
    first, last = read(skip["first"]), read(skip["last"])
    assert first is not None
    assert last is not None
    times = f"skipped {skip['count']}×" if skip["count"] > 1 else "skipped"
    text = f"{times}: {skip['reason']}"
    if skip.get("detail"):
        text += f" ({skip['detail']})"
    if skip["count"] > 1:
        text += f", {absolute(first, zone, now, with_zone=False)} to {absolute(last, zone, now, with_zone=False)}"
    blocker = (skip.get("blocked_by") or "")[-8:]
    if blocker and blocker not in text:
        text += f", blocked by {blocker}"
    return text


def run_took(run: Shown, now: datetime) -> str:
    """How long it took, or has been running."""
    if run["duration_s"] is not None and run["status"] != "RUNNING":
        return took(run["duration_s"])
    started = read(run["started_at"])
    if started is None or run["status"] != "RUNNING":
        return "-"
    return took(max(0.0, (now - started).total_seconds()))


def pause_of(pause: Shown, zone: str | None, now: datetime) -> str:
    """`paused until Mon 08:00 Europe/Paris (in 2d) by ana: "CDN move"`."""
    until = read(pause["until"])
    text = "paused until somebody resumes it" if until is None else f"paused until {absolute(until, zone, now)}"
    if until is not None:
        text += f" ({ago(pause['until'], now)})"
    if pause["author"]:
        text += f" by {pause['author']}"
    if pause["reason"]:
        text += f': "{pause["reason"]}"'
    return text


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _meaning(code: int) -> str:
    if code == 127:
        return " (command not found)"
    if code == 126:
        return " (not executable)"
    if code > 128 and signal_name(code - 128).startswith("SIG"):
        return f" (probably {signal_name(code - 128)})"
    return ""
