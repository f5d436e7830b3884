"""Runs, skips and pauses in the few words that fit into a line."""

from __future__ import annotations

import signal
from datetime import datetime
from typing import Any

from scheduler.cli.times import ago, at, both, read, span, took

Shown = dict[str, Any]

WORTH_TELLING = 1.0
"""Seconds that a run waited between its attempts."""

PAYLOAD_OF_CANCELED = "its payload stays with it; a canceled run is no dead letter"
_LOCK = "lock: another job held it until the next occurrence came"

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
    """How it ended, or what it does now: `ok`, `exit 1`, `killed (SIGKILL)`, `running 40 %`, `waits for lock x`,
    `canceled by ana: wrong month`."""
    status = run["status"]
    if status == "COMPLETED":
        return "ok"
    if status == "RUNNING":
        progress = run.get("progress")
        words = "running" if progress is None else f"running {progress:.0f} %"
        return f"{words}, asked to end: {run['cancel']}" if run.get("cancel") else words
    if status == "PENDING":
        return waits(run, now)
    if status == "CANCELED":
        return str(run.get("cancel") or "canceled")
    if status == "SKIPPED":
        return _LOCK if run["reason"] == "lock" else f"skipped: {run['reason']}"
    return failure(run)


def brief_result_of(run: Shown, now: datetime) -> str:
    """The same where there is no room for words of people."""
    words = {"CANCELED": "canceled", "SKIPPED": f"skipped: {run['reason']}"}
    if run["status"] == "RUNNING" and run["cancel"]:
        return "running, asked to end"
    return words.get(run["status"]) or result_of(run, now)


def fate_of(run: Shown, now: datetime) -> str:
    """How it ended, with everything that is known about a failure."""
    return reason_of(run) if run["status"] == "FAILED" else result_of(run, now)


def verdict_of(run: Shown, now: datetime) -> str:
    """In one line where it stands: `COMPLETED after 25s: ok`, `FAILED after 5ms: exit 2`, `RUNNING for 3.0s: 40 %`. How
    long it took goes before the reason: that may be a sentence, which a length at its end would change."""
    status, length, fate = run["status"], run_took(run, now), fate_of(run, now)
    if status == "RUNNING":
        fate = fate.removeprefix("running").lstrip(" ,")
    lasted = "" if status == "PENDING" or length == "-" else f" {'for' if status == 'RUNNING' else 'after'} {length}"
    head = status + lasted
    return f"{head}: {fate}" if fate else head


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
        if waiting["holder_dead"]:
            return f"waits until dead letter {holder[-8:]} is retried or discarded"
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


def skip_of(skip: Shown, zone: str, now: datetime) -> str:
    """Why instants did not run, what counts most first: `overlap 12×: run 3f2a91c0 is still running, Mon 02:00 to
    Mon 02:11`."""
    text = f"{skip['reason']} {skip['count']}×" if skip["count"] > 1 else str(skip["reason"])
    reasons = [skip["detail"]] if skip["detail"] else []
    blocker = (skip["blocked_by"] or "")[-8:]
    if blocker and blocker not in skip["detail"]:
        reasons.append(f"blocked by run {blocker}")
    if skip.get("no_daemon"):
        reasons.append(no_daemon(skip["no_daemon"], zone, now))
    if reasons:
        text += f": {'; '.join(reasons)}"
    if skip["count"] > 1:
        text += f", {span(skip['first'], skip['last'], zone, now)}"
    return text


def no_daemon(gap: Shown, zone: str, now: datetime) -> str:
    """`no daemon ran from Mon 02:00 to 03:00`; `from Mon 02:00 at the earliest`, if nobody saw the end of the one
    before; and since when that one was there but planned nothing."""
    if gap["from"] is None:
        return f"no daemon ran before {at(gap['until'], zone, now, with_zone=False)}"
    start, _, end = span(gap["from"], gap["until"], zone, now).partition(" to ")
    text = f"no daemon ran from {start}{'' if gap.get('from_exact', True) else ' at the earliest'} to {end}"
    if gap.get("leaving_from"):
        since = at(gap["leaving_from"], zone, now, with_zone=False)
        text = f"a daemon that was leaving planned nothing from {since}; {text}"
    return text


def dead_letter(run: Shown) -> str | None:
    """What becomes of the payload of a run that is over and did not complete; None if it carried none."""
    if not run["has_payload"]:
        return None
    if run["status"] == "CANCELED":
        return PAYLOAD_OF_CANCELED
    if run["status"] != "FAILED":
        return None
    if run["discarded_at"] is not None:
        return "it carried a payload; as a dead letter it was discarded"
    return "it carried a payload and is a dead letter until it is retried or discarded"


def run_took(run: Shown, now: datetime) -> str:
    """How long it was at work, or has been running: `12s`; with the waits between its attempts told apart: `12s of 5m`;
    or how long it can have been: `≤9h`, if nobody saw its end, or if it runs and waited before."""
    started = read(run["started_at"])
    if run["status"] == "RUNNING" and started is not None:
        length = took(max(0.0, (now - started).total_seconds()))
        return length if run["attempt"] <= 1 else f"≤{length}"
    seconds = run["duration_s"]
    if seconds is None or run["status"] == "RUNNING":
        return "-"
    if not run["duration_exact"]:
        return f"≤{took(seconds)}"
    waited = run["attempt"] > 1 and run["elapsed_s"] is not None and run["elapsed_s"] - seconds >= WORTH_TELLING
    return f"{took(seconds)} of {took(run['elapsed_s'])}" if waited else took(seconds)


def pause_of(pause: Shown, zone: str | None, now: datetime) -> str:
    """`paused by ana until Mon 08:00 Europe/Paris (in 2d): "CDN move"`."""
    text = f"paused by {pause['author']}" if pause["author"] else "paused"
    text += " until " + ("somebody resumes it" if pause["until"] is None else both(pause["until"], zone, now))
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
