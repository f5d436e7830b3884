"""The machine itself: when it was too busy for anybody to be on time, which is nobody's fault and must be known."""

from __future__ import annotations

import threading
import time
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
        before = window = time.monotonic()
        waited = _waited()
        crowded: float | None = None
        while not self._over.wait(0.05):
            now = time.monotonic()
            if now - before - 0.05 > HITCH:
                self._note(before)
            before = now
            if now - window >= WINDOW:
                share, waited = (_waited() - waited) / (now - window), _waited()
                if share >= CROWDED:
                    crowded = window if crowded is None else crowded
                elif crowded is not None:
                    self._note(crowded)
                    crowded = None
                window = now
        if crowded is not None:
            self._note(crowded)

    def _note(self, since: float) -> None:
        """From that monotonic time until now."""
        now = time.time()
        self._log.troubles.append(Trouble(STALL, EVERYBODY, now - (time.monotonic() - since), now, now))


def _waited() -> float:
    """Seconds since boot in which somebody waited for a core; 0 where the kernel does not tell."""
    try:
        text = _PRESSURE.read_text()
    except OSError:
        return 0.0
    return int(text.split("\n", 1)[0].rpartition("total=")[2]) / 1e6
