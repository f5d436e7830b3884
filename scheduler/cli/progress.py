"""One line at the bottom of a terminal that says how far a run is."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

from scheduler.cli.daemon import part
from scheduler.cli.surface import Surface
from scheduler.cli.text import clip, plain
from scheduler.cli.times import took
from scheduler.cli.words import run_took
from scheduler.core.errors import SchedulerError
from scheduler.streams import tell

Shown = dict[str, Any]

EVERY = 1.0
"""Seconds between two looks at the run."""
WIDTH = 20
_BEGIN = "\r\x1b[K"
"""Back to the first column, and the line is empty."""


class ProgressLine:
    """Drawn on stderr, and only on a terminal that can go back in a line; elsewhere nothing is written or asked."""

    def __init__(self, surface: Surface, run: str) -> None:
        self._surface = surface
        self._run = run
        self._on = sys.stderr.isatty() and surface.environ.get("TERM") != "dumb"
        self._drawn = False
        self._text = ""
        self._looked_at = 0.0
        self._usual: float | None = None
        self._asked = False
        self.run: Shown | None = None
        """What whoever draws knows of the run; then nobody is asked."""

    def draw(self) -> None:
        """Draws what it knows; looks at the run every EVERY seconds. A daemon that does not answer changes nothing."""
        if not self._on:
            return
        if time.monotonic() - self._looked_at >= EVERY:
            self._looked_at = time.monotonic()
            self._look()
        if self._text and not self._drawn:
            tell(self._text)
            self._drawn = True

    def _look(self) -> None:
        try:
            run = self.run or self._surface.daemon.get(f"/v1/runs/{self._run}")
            usual = self._usually(run["job"])
        except SchedulerError:
            return
        text = ""
        if run["status"] == "RUNNING":
            line = progress_line(run, run_took(run, self._surface.now()), usual)
            text = clip(line, shutil.get_terminal_size().columns - 1)
        if text != self._text:
            self.clear()
        self._text = text

    def clear(self) -> None:
        """Makes room for what shall stay."""
        if self._drawn:
            tell(_BEGIN)
            self._drawn = False

    def _usually(self, job: str) -> float | None:
        if not self._asked:
            habits = self._surface.daemon.get(f"/v1/jobs/{part(job)}", {"next": 0, "runs": 0})["job"]["habits"]
            self._usual = None if habits is None else habits["p50_s"]
            self._asked = True
        return self._usual


def progress_line(run: Shown, length: str, usual: float | None) -> str:
    """`▓▓▓▓▓▓▓▓░░░░░░░░░░░░ 40 %  page 200 of 500  12s, usually 30s`."""
    parts = []
    if run["progress"] is not None:
        full = round(WIDTH * min(100.0, max(0.0, run["progress"])) / 100)
        parts.append(f"{'▓' * full}{'░' * (WIDTH - full)} {run['progress']:.0f} %")
    if run["message"]:
        parts.append(plain(run["message"]))
    if not parts:
        parts.append("running")
    parts.append(length + ("" if usual is None else f", usually {took(usual)}"))
    return "  ".join(parts)
