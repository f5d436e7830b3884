"""Following a run: its output as it comes, until it is over."""

from __future__ import annotations

import time
from typing import Any

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.words import waits

PAUSE = 0.3
"""Seconds between two looks at a run that prints nothing."""
FINAL = frozenset({"COMPLETED", "FAILED", "CANCELED", "SKIPPED"})


class WaitedTooLong(Exception):
    """The time that somebody wanted to wait is over; the run goes on."""


def follow(surface: Surface, run: str, *, attempt: int | None = None, deadline: float | None = None) -> dict[str, Any]:
    """Copies what the run prints to stdout until its status is final, through all attempts; the run as it is then.

    With `attempt`: until that one is over. `deadline`: monotonic seconds, WaitedTooLong after it."""
    shown, offset = attempt or 0, 0
    told, last = "", b""
    while True:
        query = {"attempt": shown or None, "offset": offset}
        body, headers = surface.daemon.raw(f"/v1/runs/{part(run)}/log", query if shown else {})
        number = int(headers["Schedctl-Attempt"])
        if shown and number != shown:
            raise AssertionError(f"asked for attempt {shown}, got {number}")
        shown = number
        offset = int(headers["Schedctl-Offset"])
        if body:
            surface.raw(body)
            last = body[-1:]
        complete = headers["Schedctl-Complete"] == "true"
        if complete and (attempt is not None or headers["Schedctl-Status"] in FINAL):
            if attempt is not None or not _further(surface, run, shown):
                surface.end_line(last)
                return _run(surface, run)
            shown, offset = shown + 1, 0
            continue
        if complete:
            seen = _run(surface, run)
            if seen["attempt"] > shown:
                surface.say(f"— attempt {seen['attempt']} —")
                shown, offset = seen["attempt"], 0
                continue
            word = seen["waits_for"] or "ready"
            if seen["status"] == "PENDING" and told == f"{word}?":
                surface.say(f"{seen['short_id']}: {waits(seen, surface.now())}")
                told = word
            elif seen["status"] == "PENDING" and told != word:
                # Most waiting is over at the next look and not worth a line.
                told = f"{word}?"
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitedTooLong
        if not body:
            time.sleep(PAUSE)


def wait(surface: Surface, run: str, deadline: float | None = None) -> dict[str, Any]:
    """The run once its status is final, without showing what it prints."""
    while True:
        left = 30.0 if deadline is None else min(30.0, deadline - time.monotonic())
        seen = surface.daemon.get(f"/v1/runs/{part(run)}", {"wait": max(1, round(left))}, timeout=60)
        if seen["status"] in FINAL:
            return dict(seen)
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitedTooLong


def _further(surface: Surface, run: str, shown: int) -> bool:
    return bool(_run(surface, run)["attempt"] > shown)


def _run(surface: Surface, run: str) -> dict[str, Any]:
    return dict(surface.daemon.get(f"/v1/runs/{part(run)}"))
