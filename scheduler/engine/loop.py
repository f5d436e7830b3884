"""One loop of the engine: a tick that is never entered twice, can be asked for at any time, and never dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.look import Look
from scheduler.engine.outages import Outages
from scheduler.engine.turns import Obstacle

log = structlog.get_logger("engine")


class Loop:
    """Runs `tick(now)` when told to. A request that comes during a tick is honoured right after it.

    A turn that nobody asked for (`turn`) first hears `rests`, which is shown a look that all loops share (`look`): if
    it says that a tick would find nothing to do, that was the turn.

    An exception ends the tick, not the loop: it is logged, counted in `errors`, and the next request tries again.
    `now` may need the database; `first` is done before it is asked, also while the database is away.
    What is unavailable is told by `outages`, which the loops of a daemon share.
    `turned_at` is the monotonic time at which a tick last ended well, `returned_at` when one last ended at all.
    """

    def __init__(
        self,
        name: str,
        tick: Callable[[datetime], int],
        now: Callable[[], datetime],
        first: Callable[[], object] = lambda: None,
        outages: Outages | None = None,
        look: Callable[[], Look] | None = None,
        rests: Callable[[Look], bool] = lambda look: False,
    ) -> None:
        self.name = name
        self._tick = tick
        self._now = now
        self._first = first
        self._outages = outages or Outages()
        self._look = look
        self._rests = rests
        self._guard = threading.Lock()
        self._requested = threading.Event()
        self._asked = False
        self._closed = False
        self.turned_at = self.returned_at = time.monotonic()
        self.thread: int | None = None
        """The thread that ticks at present, by its number in the system."""
        self.last_seconds = 0.0
        self.errors = 0
        self.ailing: str | None = None
        """Why its ticks fail at present, if they do because something is unavailable."""
        self.waits_for: str | None = None
        """What that is, as core.remark calls it."""
        self.failing = False
        """Its last tick ended with an error that nobody foresaw."""
        self.obstacle: Obstacle | None = None
        """What its ticks fail of at present, and since when, if they do."""

    def request(self) -> bool:
        """Asks for a tick; False if one was asked for already and has not begun."""
        if self._requested.is_set() and self._asked:
            return False
        self._asked = True
        self._requested.set()
        return True

    def close(self) -> None:
        """Waits for the tick that is under way; none begins after it."""
        self._closed = True
        with self._guard:
            pass

    def run(self) -> None:
        """Ticks until no request is left; returns at once if another thread is doing that."""
        self._asked = True
        self.turn()

    def turn(self) -> None:
        """The same because it is time for it: without a tick where there is nothing to do."""
        self._requested.set()
        while self._requested.is_set() and not self._closed and self._guard.acquire(blocking=False):
            try:
                self._requested.clear()
                asked, self._asked = self._asked, False
                self._turn(asked=asked)
            finally:
                self._guard.release()

    def _turn(self, *, asked: bool) -> None:
        begun = time.monotonic()
        self.thread = threading.get_native_id()
        try:
            self._first()
            if asked or self._look is None or not self._rests(self._look()):
                self._tick(self._now())
        except Unavailable as error:
            self.errors += 1
            self.failing = False
            self._meet(error.reason)
            self.ailing, self.waits_for = str(error), error.about
            self._outages.meet(self.name, error.about, str(error))
        except Exception:
            self.errors += 1
            self.failing = True
            self._meet("every turn failed; the daemon's log has the error")
            log.exception("loop_failed", loop=self.name)
        else:
            self.turned_at = time.monotonic()
            self.failing = False
            self.obstacle = None
            self.ailing = self.waits_for = None
            self._outages.turned()
        self.thread = None
        self.returned_at = time.monotonic()
        self.last_seconds = self.returned_at - begun

    def _meet(self, reason: str) -> None:
        """The first reason counts: what follows may only follow from it."""
        self.obstacle = self.obstacle or Obstacle(reason, time.monotonic())
