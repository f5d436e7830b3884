"""How many requests a second are let in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Bucket:
    """Holds up to `burst` tokens and gets `rate` a second. Any thread may use it."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._guard = threading.Lock()
        self._tokens = self._burst
        self._at = clock()

    def wait(self) -> float:
        """Seconds until there is a token; 0: now."""
        with self._guard:
            return self._short()

    def take(self) -> float:
        """Takes a token and gives 0; if there is none, the seconds until there is one."""
        with self._guard:
            short = self._short()
            if not short:
                self._tokens -= 1
            return short

    def _short(self) -> float:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._tokens >= 1 else (1 - self._tokens) / self._rate
