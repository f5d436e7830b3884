"""Log lines about what strangers do: they must not be able to fill the log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

EVERY = 60.0
"""Seconds between two lines of one kind."""


class Seldom:
    """Writes at most one line per kind and minute; `times` says how often it happened since the line before. Any thread
    may call it."""

    def __init__(self, log: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._guard = threading.Lock()
        self._said: dict[tuple[str, str], float] = {}
        self._times: dict[tuple[str, str], int] = {}

    def warn(self, event: str, kind: str = "", **fields: Any) -> None:
        """`kind` tells lines of one event apart; strangers must not be able to make up new ones."""
        one = event, kind
        with self._guard:
            times = self._times.get(one, 0) + 1
            now = self._clock()
            said = self._said.get(one)
            if said is not None and now - said < EVERY:
                self._times[one] = times
                return
            self._said[one] = now
            self._times[one] = 0
        self._log.warning(event, times=times, **fields)
