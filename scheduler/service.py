"""The daemon as a service: what the service manager hears of it, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog

from scheduler.core.ids import short
from scheduler.core.model import Run
from scheduler.core.value_object import value_object
from scheduler.engine.drain import Drain
from scheduler.engine.health import ESSENTIAL
from scheduler.engine.loop import Loop
from scheduler.observe.notify_socket import NotifySocket, monotonic_usec
from scheduler.readiness import Readiness

log = structlog.get_logger("daemon")

EXTENSION = 60.0
"""Seconds by which a start or an end that takes its time asks for more, at a time."""
LONGEST_START = 3600.0
"""Seconds for which a start (a migration, a database that is away) asks for more time at all."""
SHORTEST_HANG = 5.0
"""Seconds without a return that a loop may always take: it is called every second, on a loaded machine later."""
STATUS_INTERVAL = 2.0
NAMED = 3
"""Runs that a line of status names; the others it counts."""


@value_object
class Parts:
    """What is looked at to say how the daemon is."""

    loops: Mapping[str, Loop]
    readiness: Readiness
    drain: Drain
    runs: Callable[[], Sequence[Run]]
    jobs: Callable[[], int]


class Service:
    """Tells when the daemon is ready, reloads, drains, and that it is not hung.

    The watchdog is about hanging and nothing else: it is fed while the main thread and every essential loop come back,
    with success or without. A database that does not answer is no hang. Restarting would not bring it back, and it
    would end children that may well go on (on SQLite a locked, full or slow disk never ends one)."""

    def __init__(self, notify: NotifySocket, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._notify = notify
        self._monotonic = monotonic
        self._guard = threading.Lock()
        self._ready = threading.Event()
        self._stopping = False
        self._parts: Parts | None = None
        self._joined_at = 0.0
        self._status = ""
        self._status_at = self._fed_at = self._extended_at = float("-inf")
        self._hanging: list[str] = []

    def start(self) -> None:
        """From now until the daemon is ready, the service manager is asked for more time, at most for an hour."""
        if self._notify.there:
            threading.Thread(target=self._extend_start, name="service", daemon=True).start()

    def stage(self, text: str) -> None:
        """What the start is at."""
        self._say(text)

    def join(self, parts: Parts) -> None:
        """The daemon's parts are there; what their loops did before does not count."""
        self._parts = parts
        self._joined_at = self._monotonic()

    def round(self) -> None:
        """Called by the main thread all the time, and by no other."""
        if self._parts is None or not self._notify.there:
            return
        if self._parts.drain.begun:
            self.leave()
        elif not self._ready.is_set():
            self._get_ready(self._parts)
        self._feed_watchdog(self._parts)
        if self._monotonic() - self._status_at >= STATUS_INTERVAL:
            self._say(_sentence(self._parts, ready=self._ready.is_set()))

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Around everything that puts a file in force."""
        self._phase(RELOADING=1, MONOTONIC_USEC=monotonic_usec())
        try:
            yield
        finally:
            self._phase(READY=1)

    def leave(self) -> None:
        """The daemon is on its way out; to be called again and again while that takes."""
        with self._guard:
            first, self._stopping = not self._stopping, True
        now = self._monotonic()
        lines = {"STOPPING": 1} if first else {}
        if first or now - self._extended_at >= EXTENSION / 4:
            self._extended_at = now
            self._status_at = float("-inf")
            self._notify.send(**lines, EXTEND_TIMEOUT_USEC=_usec(EXTENSION))

    # ------------------------------------------------------------ parts

    def _extend_start(self) -> None:
        until = self._monotonic() + LONGEST_START
        while self._monotonic() < until:
            self._notify.send(EXTEND_TIMEOUT_USEC=_usec(EXTENSION))
            if self._ready.wait(EXTENSION / 4):
                return

    def _get_ready(self, parts: Parts) -> None:
        turned = all(parts.loops[name].turned_at > self._joined_at for name in ESSENTIAL)
        if turned and not any(check() for check in parts.readiness.checks().values()):
            self._ready.set()
            self._status = _sentence(parts, ready=True)
            self._phase(READY=1, STATUS=self._status)

    def _phase(self, **lines: str | int) -> None:
        """Says so if the daemon is ready and not leaving: a reload that ends then changes nothing any more."""
        with self._guard:
            if self._ready.is_set() and not self._stopping:
                self._notify.send(**lines)

    def _feed_watchdog(self, parts: Parts) -> None:
        limit = self._notify.watchdog
        if limit is None:
            return
        now = self._monotonic()
        hang = max(limit / 2, SHORTEST_HANG)
        hanging = [name for name in ESSENTIAL if _hangs(parts.loops[name], now - hang)]
        if hanging != self._hanging:
            self._hanging = hanging
            if hanging:
                log.error("loops_hang", loops=hanging, seconds=hang, what="the watchdog is not fed any more")
        if not hanging and now - self._fed_at >= limit / 4:
            self._fed_at = now
            self._notify.send(WATCHDOG=1)

    def _say(self, status: str) -> None:
        self._status_at = self._monotonic()
        if status != self._status:
            self._status = status
            self._notify.send(STATUS=status)


def _hangs(loop: Loop, since: float) -> bool:
    return loop.returned_at < since and not waits_for_disk(loop.thread)


def waits_for_disk(thread: int | None) -> bool:
    """This thread (its number in the system) is in uninterruptible sleep, as in an fsync that a disk does not answer:
    no end of ours would get it out of there."""
    try:
        with open(f"/proc/{thread}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].startswith(b"D")
    except OSError:
        return False


def _sentence(parts: Parts, *, ready: bool) -> str:
    runs = parts.runs()
    if parts.drain.begun:
        named = ", ".join(f"{run.job} ({short(run.id)})" for run in runs[:NAMED])
        more = f" and {len(runs) - NAMED} more" if len(runs) > NAMED else ""
        return f"Leaving: waits for {named}{more}" if runs else "Leaving"
    checks = parts.readiness.checks().values()
    wrong = parts.readiness.remarks() or [why for check in checks if (why := check()) is not None]
    jobs = parts.jobs()
    counts = f"{jobs} job{'' if jobs == 1 else 's'}, {len(runs) or 'none'} running"
    return "; ".join([counts if ready else "Starting", *wrong])


def _usec(seconds: float) -> int:
    return int(seconds * 1e6)
