"""Waiting for a run to change without asking the database all the time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from scheduler.core.notices import Bus, Notice

POLL = 1.0
"""Seconds after which somebody who waits looks again: other nodes' runs make no notice here, and hints may be lost."""


class RunWatch:
    """Wakes those who wait for a run when this process hears of it, and all of them when runs may have ended elsewhere
    (which `elsewhere` has told). Used from the server's event loop only; notices and hints come from any thread."""

    def __init__(self, bus: Bus, elsewhere: Callable[[Callable[[], None]], object]) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        bus.subscribe(self._hear, "run.")
        elsewhere(self._hear_others)

    @contextlib.contextmanager
    def watch(self, run: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something is heard about `run` inside the block."""
        self._loop = asyncio.get_running_loop()
        event = asyncio.Event()
        self._waiting.setdefault(run, set()).add(event)
        try:
            yield event
        finally:
            events = self._waiting[run]
            events.discard(event)
            if not events:
                del self._waiting[run]

    def _hear(self, notice: Notice) -> None:
        run = notice.fields.get("run")
        loop = self._loop
        if loop is not None and run in self._waiting and notice.name.startswith("run."):
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(self._wake, run)

    def _hear_others(self) -> None:
        loop = self._loop
        if loop is not None and self._waiting:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        for run in self._waiting:
            self._wake(run)

    def _wake(self, run: str) -> None:
        for event in self._waiting.get(run, ()):
            event.set()
