"""Events for those who listen: what happened on this node, kept for a while, so that who comes back misses none."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler.core.notices import Bus, Notice
from scheduler.core.stamp import to_text

KEPT = 10_000
"""Events that are kept for those who come back."""
BEHIND = 1_000
"""A listener that is so many events behind is dropped: it comes back and asks for what it missed, or loads anew."""
MOST_LISTENERS = 200


@dataclass(slots=True)
class Event:
    """`number` grows by one; with the `era` of its hub it is the event's id."""

    number: int
    notice: Notice
    _data: str | None = None

    @property
    def name(self) -> str:
        return self.notice.name

    @property
    def job(self) -> str | None:
        job: str | None = self.notice.fields.get("job")
        return job

    @property
    def data(self) -> str:
        """Made when somebody wants it: most events nobody listens to."""
        if self._data is None:
            self._data = json.dumps(_shown(self.notice), ensure_ascii=False, separators=(",", ":"), default=str)
        return self._data

    def text(self, era: str) -> str:
        return f"id: {era}-{self.number}\nevent: {self.name}\ndata: {self.data}\n\n"


class Listener:
    """Somebody who listens, in the event loop that made it."""

    def __init__(self, wanted: Callable[[Event], bool]) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted = wanted
        self._waiting: deque[Event] = deque()
        self._news = asyncio.Event()
        self._told = False
        self.dropped = False

    def hear(self, event: Event) -> None:
        """From any thread, while the hub's lock is held."""
        if self.dropped or not self._wanted(event):
            return
        self._waiting.append(event)
        if len(self._waiting) > BEHIND:
            self.drop()
        elif not self._told:
            self._tell()

    def drop(self) -> None:
        self.dropped = True
        self._tell()

    def _tell(self) -> None:
        self._told = True
        with contextlib.suppress(RuntimeError):  # The loop was closed: nobody listens any more.
            self._loop.call_soon_threadsafe(self._news.set)

    async def next(self, timeout: float) -> list[Event]:
        """What has come; nothing after `timeout` seconds, or when it was dropped."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), timeout)
        self._news.clear()
        self._told = False
        events = []
        with contextlib.suppress(IndexError):
            while True:
                events.append(self._waiting.popleft())
        return [] if self.dropped else events


class Hub:
    """Takes every notice of the bus. Used from any thread."""

    def __init__(self, bus: Bus) -> None:
        self.era = secrets.token_hex(4)
        """Numbers start again with each daemon; its era tells whether somebody was here before."""
        self._guard = threading.Lock()
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._number = 0
        self._listeners: set[Listener] = set()
        self._closed = False
        bus.subscribe(self._hear)

    def _hear(self, notice: Notice) -> None:
        with self._guard:
            self._number += 1
            event = Event(self._number, notice)
            self._kept.append(event)
            for listener in self._listeners:
                listener.hear(event)

    @property
    def last(self) -> str:
        """The id of the newest event."""
        return f"{self.era}-{self._number}"

    @contextlib.contextmanager
    def listen(
        self, wanted: Callable[[Event], bool], after: str | None = None
    ) -> Iterator[tuple[Listener, Sequence[Event], bool]]:
        """Somebody who hears all further events, the kept ones since the id `after`, and whether these are all there
        were since then."""
        listener = Listener(wanted)
        with self._guard:
            missed, whole = self._since(after)
            self._listeners.add(listener)
            if self._closed:
                listener.drop()
        try:
            yield listener, [event for event in missed if wanted(event)], whole
        finally:
            with self._guard:
                self._listeners.discard(listener)

    def _since(self, after: str | None) -> tuple[list[Event], bool]:
        if after is None:
            return [], True
        era, _, number = after.rpartition("-")
        if era != self.era or not (number.isascii() and number.isdigit() and len(number) <= 18):
            return [], False
        seen = int(number)
        oldest = self._kept[0].number if self._kept else self._number + 1
        whole = oldest - 1 <= seen <= self._number
        return [event for event in self._kept if event.number > seen], whole

    @property
    def full(self) -> bool:
        return len(self._listeners) >= MOST_LISTENERS

    def close(self) -> None:
        """The daemon is leaving: everybody is sent away."""
        with self._guard:
            self._closed = True
            for listener in self._listeners:
                listener.drop()


def _shown(notice: Notice) -> dict[str, Any]:
    """`run` is `run_id` here, as everywhere in the API."""
    return {
        "run_id" if name == "run" else name: to_text(value) if isinstance(value, datetime) else value
        for name, value in notice.fields.items()
    }
