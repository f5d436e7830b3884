"""Outages as the log tells them: each reason once, and the end once, whatever the loops meet of it and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger("engine")

QUIET = 15.0
"""Seconds for which no loop may have met an outage before it counts as over: a loop that turns well may not have asked
for what is away, and one that asks may wait for some seconds until it knows."""


class Outages:
    """Shared by the loops of a daemon; called from their threads."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._said: dict[str, set[str]] = {}
        self._met: dict[str, float] = {}

    def meet(self, loop: str, about: str, reason: str) -> None:
        """A loop waits for what `about` names."""
        with self._lock:
            self._met[about] = self._monotonic()
            reasons = self._said.setdefault(about, set())
            news = reason not in reasons
            reasons.add(reason)
        if news:
            log.warning("loop_waits", loop=loop, reason=reason)

    def turned(self) -> None:
        """A loop has turned well."""
        if not self._met:
            return
        with self._lock:
            now = self._monotonic()
            over = [about for about, met in self._met.items() if now - met >= QUIET]
            for about in over:
                del self._met[about], self._said[about]
        for about in over:
            log.info("loop_recovered", about=about)
