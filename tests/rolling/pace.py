"""How slow the machine itself is: what no daemon could make up for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 0.2
"""Seconds between two looks."""
WORK = 0.02
"""Seconds of computing in a look."""
NEAR = 3.0
"""Seconds around an instant within which a look tells about it."""
STARVED = 3.0
"""How many times slower than alone a machine is on which nothing can be prompt."""


class Pace:
    """How many times longer than on a machine of its own a piece of computing took."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._stop.wait(EVERY):
            begun, used = time.monotonic(), time.thread_time()
            while time.thread_time() - used < WORK:
                pass
            took = time.monotonic() - begun
            self._seen.append((time.time(), max(1.0, took / (time.thread_time() - used))))

    def slowness(self, instant: float) -> float:
        """Around that instant (seconds since 1970); 1 is a machine that does nothing else."""
        return max((times for at, times in self._seen if abs(at - instant) <= NEAR), default=1.0)

    def starved(self) -> list[tuple[float, float]]:
        """When nothing could be prompt."""
        return [(at - NEAR, at) for at, times in self._seen if times >= STARVED]


@contextmanager
def pace() -> Iterator[Pace]:
    one = Pace()
    one._thread.start()
    try:
        yield one
    finally:
        one._stop.set()
        one._thread.join()
