"""Requests that were refused at the door, kept so that they can be verified again."""

from __future__ import annotations

import threading
from collections import deque
from datetime import datetime

from scheduler.core.event import Reject
from scheduler.core.ports import Store

KEEP = 1_000
"""Refused requests of a source that are kept, the newest."""
AT_ONCE = 100
"""Refused requests of a source between two turns that are kept, the newest: a flood costs no more than this."""
SOURCES = 1_000
"""Sources of which any are kept between two turns."""


class RefusedRequests:
    """`add` from any thread, and it waits for nothing; what was added is written by `tick`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Reject]] = {}

    def add(self, reject: Reject) -> None:
        with self._lock:
            if reject.source in self._waiting or len(self._waiting) < SOURCES:
                self._waiting.setdefault(reject.source, deque(maxlen=AT_ONCE)).append(reject)

    def tick(self, now: datetime) -> int:
        """The number that was written. What cannot be written because the database is away is not kept."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for rejects in waiting.values():
            with self._store.begin() as tx:
                for reject in rejects:
                    tx.events.reject(reject, KEEP)
        return sum(map(len, waiting.values()))
