"""The door of one address: how many may be inside at once, and for how long they may say nothing."""

from __future__ import annotations

import asyncio
import resource
from typing import Any, Protocol

import structlog

from scheduler.web.seldom import Seldom

MOST, FEWEST = 512, 16
"""Bounds on the number of places, however many descriptors there are."""
SHARE = 4
"""One address takes at most this part of the descriptors of the process; what is left is for the daemon's own work."""
LOOK = 1.0
"""Seconds between two looks at all connections."""


class Inside(Protocol):
    @property
    def silent_since(self) -> float | None: ...

    def end(self) -> None: ...

    def check(self, now: float) -> None: ...


class Door:
    """Used from one event loop. When all places are taken, whoever has been silent for longest makes room for the new
    one; if everybody inside is being served, the new one is turned away."""

    def __init__(self, name: str, places: int, log: Any = None) -> None:
        self.name = name
        self.places = places
        self._inside: set[Inside] = set()
        self._closed = False
        self._seldom = Seldom(log or structlog.get_logger("web"))

    def close(self) -> None:
        """Who is inside may finish; nobody else is let in."""
        self._closed = True

    def enter(self, one: Inside) -> str | None:
        """Why it was turned away; None: it is inside."""
        if self._closed:
            return "the daemon is stopping"
        if len(self._inside) >= self.places:
            silent = [(since, id(other), other) for other in self._inside if (since := other.silent_since) is not None]
            self.note("connections_full", places=self.places)
            if not silent:
                return "too many connections"
            min(silent)[2].end()
        self._inside.add(one)
        return None

    def leave(self, one: Inside) -> None:
        self._inside.discard(one)

    def __len__(self) -> int:
        return len(self._inside)

    def note(self, event: str, **fields: Any) -> None:
        """One line a minute of each kind."""
        self._seldom.warn(event, address=self.name, **fields)

    async def watch(self) -> None:
        """Looks after everybody inside, until it is cancelled."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._trouble)
        while True:
            await asyncio.sleep(LOOK)
            now = loop.time()
            for one in list(self._inside):
                one.check(now)

    def _trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What asyncio itself cannot do, above all accept when the process has no descriptor left."""
        error = context.get("exception")
        self.note("connection_trouble", what=context.get("message"), error=None if error is None else str(error))


def places_for(soft_limit: int | None = None) -> int:
    """How many connections one address takes, by the number of descriptors that this process may have."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if soft_limit is None else soft_limit
    if limit == resource.RLIM_INFINITY:
        return MOST
    return max(FEWEST, min(MOST, limit // SHARE))
