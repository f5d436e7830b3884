"""What a node holds: its live runs, and the slots that claims under way may still fill."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.core.execution import Executor
from scheduler.core.model import Run
from scheduler.core.outcome import Outcome, Span


@dataclass(slots=True, eq=False)
class Live:
    """An attempt this node holds. `why` is set once its end was asked for; `outcome` once it is over but not yet
    settled, and with it `span`, when it was at work (from `began`, in seconds of CLOCK_BOOTTIME, unless somebody else
    saw it begin)."""

    run: Run
    executor: Executor | None
    expires: float
    began: float = 0.0
    why: str | None = None
    outcome: Outcome | None = None
    span: Span | None = None


class Held:
    """All live attempts of this node, shared by the threads that claim, start, end and settle them.

    Of a run only the newest attempt is live: it may be claimed again before its former attempt is forgotten here."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._lives: dict[str, Live] = {}
        self._reserved = 0
        self._closed = False
        self._missed = False
        self._starting = 0

    def reserve(self, freed: int = 0) -> int:
        """The free slots, and those of the `freed` lives that will have been dropped: nobody else gets them until
        `release`, so that two claims at once do not take more than there are."""
        with self._lock:
            free = self._slots - len(self._lives) - self._reserved + freed
            if self._closed or free <= 0:
                self._missed = self._closed or self._reserved > 0
                return 0
            self._reserved += free
            return free

    def release(self, slots: int) -> bool:
        """True if somebody found no slot because of this reservation, and should look again."""
        with self._lock:
            self._reserved -= slots
            missed, self._missed = self._missed, False
            return missed

    def close(self) -> bool:
        """Until `reopen` nothing is reserved. False (and nothing is closed) while a claim is under way."""
        with self._lock:
            if not self._reserved:
                self._closed = True
            return self._closed

    def reopen(self) -> None:
        with self._lock:
            self._closed = False

    def add(self, live: Live) -> None:
        """It is to be started; `begun` follows."""
        with self._lock:
            self._lives[live.run.id] = live
            self._starting += 1

    def begun(self) -> None:
        """One of those that were added was started, or was not to be."""
        with self._lock:
            self._starting -= 1

    @property
    def starting(self) -> bool:
        """Some wait to be started."""
        return self._starting > 0

    def drop(self, lives: Iterable[Live]) -> None:
        with self._lock:
            for live in lives:
                if self._lives.get(live.run.id) is live:
                    del self._lives[live.run.id]

    def has(self, live: Live) -> bool:
        with self._lock:
            return self._lives.get(live.run.id) is live

    def ended(self, run: str, attempt: int) -> Live | None:
        """That attempt, if it is over and not yet settled."""
        with self._lock:
            live = self._lives.get(run)
            return live if live is not None and live.outcome is not None and live.run.attempt == attempt else None

    def end(self, live: Live, outcome: Outcome, span: Span) -> bool:
        """Notes how it ended and when; False if that is known already."""
        with self._lock:
            if live.outcome is not None:
                return False
            live.outcome, live.span = outcome, span
            return True

    def lives(self) -> list[Live]:
        with self._lock:
            return list(self._lives.values())

    @property
    def count(self) -> int:
        """Live attempts, those included that are over and not yet settled."""
        return len(self._lives)

    @property
    def full(self) -> bool:
        """There is no free slot."""
        return len(self._lives) >= self._slots

    @property
    def empty(self) -> bool:
        """Nothing is held, and nothing is about to be."""
        with self._lock:
            return not self._lives and not self._reserved

    @property
    def over(self) -> bool:
        """All that is held has ended; what is left is to write that down."""
        with self._lock:
            return not self._reserved and all(live.outcome is not None for live in self._lives.values())
