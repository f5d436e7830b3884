"""Patience at start: a database that is away is waited for; there is nothing else that a starting daemon could do."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

import structlog

from scheduler.core.errors import Unavailable

log = structlog.get_logger("daemon")

T = TypeVar("T")

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds between two attempts; the last one again and again."""
REMIND = 60.0
"""Seconds after which the same outage is said once more."""


class ToldToStop(Exception):
    """SIGTERM or SIGINT came while there was nothing but waiting."""


class Patience:
    """As a context manager: SIGTERM and SIGINT end the waiting, SIGHUP does nothing. `reason` says what is waited for
    (None: nothing), from any thread."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """`say` tells people what is going on, each time it is something else."""
        self.reason: str | None = None
        self._say = say
        self._stop = threading.Event()
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Patience:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers[number] = signal.signal(number, self._told)
        self._handlers[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Whoever has set handlers of their own meanwhile keeps them."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) in (self._told, signal.SIG_IGN):
                signal.signal(number, handler)

    @property
    def told(self) -> bool:
        """Whether a signal has asked for the end."""
        return self._stop.is_set()

    def until_done(self, work: Callable[[], T]) -> T:
        """The result of `work()`, tried again for as long as it says that something is unavailable. Raises ToldToStop
        when a signal asks for the end; every other error comes out at once."""
        tries = 0
        since = said = 0.0
        while True:
            if self._stop.is_set():
                raise ToldToStop
            try:
                done = work()
            except Unavailable as error:
                now = time.monotonic()
                since = since or now
                if str(error) != self.reason or now - said > REMIND:
                    log.warning("database_awaited", reason=str(error), seconds=round(now - since))
                    self._say(f"Waiting: {error}")
                    said = now
                self.reason = str(error)
            else:
                if tries:
                    log.info("database_answers", seconds=round(time.monotonic() - since, 1))
                self.reason = None
                return done
            self._stop.wait(WAITS[min(tries, len(WAITS) - 1)])
            tries += 1

    def _told(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()
