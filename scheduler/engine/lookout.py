"""The lookout: one look at the ledger each second, in which all loops of a node see whether they have something to do.

A loop that turns because a second is over asks here first. The first of a second looks, the others are given what it
found, or wait for it; so an idle node reads once a second, however many loops it has. A loop that was asked for reads
for itself: whoever asked knows that there is something new.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Clock
from scheduler.core.look import Look
from scheduler.core.ports import Store
from scheduler.engine.loop import Loop
from scheduler.engine.outages import Outages

FRESH = 0.5
"""Seconds for which a look is shared: longer than loops that turn together are apart, shorter than their interval."""


class Part(Protocol):
    """What a loop hosts that rests while there is nothing to do."""

    def tick(self, now: datetime, /) -> int: ...

    def rests(self, look: Look) -> bool:
        """A tick would find nothing to do. Reads nothing from the database."""
        ...


class Lookout:
    """From any thread. `node` and `generation`: who looks, and what it has loaded."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Callable[[], str],
        generation: Callable[[], int],
        outages: Outages | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._generation = generation
        self._outages = outages
        self._guard = threading.Lock()
        self._asked: tuple[str, int] | None = None
        self._found: Look | Unavailable | None = None
        self._found_at = float("-inf")

    def loop(
        self, name: str, part: Part, now: Callable[[], datetime], first: Callable[[], object] = lambda: None
    ) -> Loop:
        """A loop that looks here before it ticks."""
        return Loop(name, part.tick, now, first, self._outages, self.look, part.rests)

    def look(self) -> Look:
        """What there is to do, as it was FRESH ago or later; its `now` is the present. Raises Unavailable: to all whom
        that concerns, and the database is not asked again for each of them."""
        look, at = self._look()
        return replace(look, now=look.now + timedelta(seconds=self._clock.monotonic() - at))

    def now(self) -> datetime:
        """The time that planning uses, as accurate as the way to the database is short."""
        return self.look().now

    def _look(self) -> tuple[Look, float]:
        with self._guard:
            asked = (self._node(), self._generation())
            if asked != self._asked or self._clock.monotonic() - self._found_at > FRESH:
                last = self._found if isinstance(self._found, Look) and asked == self._asked else None
                self._found = self._ask(asked, last)
                self._asked, self._found_at = asked, self._clock.monotonic()
            found, at = self._found, self._found_at
        if isinstance(found, Look):
            return found, at
        assert found is not None, "it was asked for"
        raise found

    def _ask(self, asked: tuple[str, int], last: Look | None) -> Look | Unavailable:
        try:
            return self._store.look(*asked, last)
        except Unavailable as away:
            return away
