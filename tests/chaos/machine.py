"""The machine itself: when it was too busy for anybody to be on time, which is nobody's fault and must be known."""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path

from tests.chaos.log import EVERYBODY, STALL, Log, Trouble

HITCH = 0.4
"""A thread that wakes later than this after its time was kept from it."""
WINDOW = 2.0
"""Seconds over which it is measured how long somebody waited for a core."""
CROWDED = 0.7
"""The share of that time from which on the machine counts as overloaded."""
_PRESSURE = Path("/proc/pressure/cpu")


class Machine:
    """Writes a trouble of everybody into the log for every time at which the machine kept its programs waiting."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="machine")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        before = time.monotonic()
        crowd = Crowd()
        while not self._over.wait(0.05):
            now = time.monotonic()
            if now - before - 0.05 > HITCH:
                self._note(before, now)
            before = now
            if (span := crowd.over(now, _waited())) is not None:
                self._note(*span)
        if crowd.span is not None:
            self._note(*crowd.span)

    def _note(self, since: float, until: float) -> None:
        """Between these monotonic times."""
        here = time.time() - time.monotonic()
        self._log.troubles.append(Trouble(STALL, EVERYBODY, since + here, until + here, until + here))


class Crowd:
    """Finds the times in which somebody had to wait for a core, whenever they begin: every stretch of WINDOW seconds is
    looked at, not one after the other. `span`: such a time, which may go on."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()
        self.span: tuple[float, float] | None = None

    def over(self, now: float, waited: float) -> tuple[float, float] | None:
        """A time that has ended. `waited`: seconds of waiting up to now."""
        self._seen.append((now, waited))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW:
            self._seen.popleft()
        begin, before = self._seen[0]
        if now - begin >= WINDOW and waited - before >= CROWDED * (now - begin):
            self.span = (begin if self.span is None else min(begin, self.span[0]), now)
        elif self.span is not None and begin > self.span[1]:
            ended, self.span = self.span, None
            return ended
        return None


def _waited() -> float:
    """Seconds since boot in which somebody waited for a core; 0 where the kernel does not tell."""
    try:
        text = _PRESSURE.read_text()
    except OSError:
        return 0.0
    return int(text.split("\n", 1)[0].rpartition("total=")[2]) / 1e6
