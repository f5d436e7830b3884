"""Requests that were refused at the door, kept so that they can be verified again."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field, replace

from scheduler.core.event import Reject
from scheduler.core.ports import Store
from scheduler.core.signature import Refusal

KEEP = 5_000
"""Refused requests of a source and a reason that are kept, the newest: apart, so that a stranger's noise, which is
mostly unsigned, leaves those that a wrong secret refused."""
KEEP_BYTES = 32 << 20
"""Of their bodies, unless a single one is larger."""
AT_ONCE = 1_000
"""Refused requests of a source and a reason between two turns that are kept, the newest: a flood costs no more."""
AT_ONCE_BYTES = 4 << 20
"""Of their bodies, unless a single one is larger."""
KINDS = 1_000
"""Sources and reasons of which any are kept between two turns."""


@dataclass(slots=True)
class _Waiting:
    rejects: deque[Reject] = field(default_factory=deque)
    size: int = 0
    dropped: int = 0

    def add(self, reject: Reject) -> None:
        self.rejects.append(reject)
        self.size += len(reject.body)
        while len(self.rejects) > AT_ONCE or (len(self.rejects) > 1 and self.size > AT_ONCE_BYTES):
            self.size -= len(self.rejects.popleft().body)
            self.dropped += 1

    def told(self) -> list[Reject]:
        first, *others = self.rejects
        return [replace(first, dropped=self.dropped), *others]


class RefusedRequests:
    """`add` from any thread, and it waits for nothing; what was added is on disk after `tick`, also from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[tuple[str, Refusal], _Waiting] = {}

    def add(self, reject: Reject) -> None:
        kind = (reject.source, reject.reason)
        with self._lock:
            if kind in self._waiting or len(self._waiting) < KINDS:
                self._waiting.setdefault(kind, _Waiting()).add(reject)

    @property
    def empty(self) -> bool:
        """Nothing waits to be written."""
        return not self._waiting

    def tick(self) -> int:
        """The number that was written. What cannot be written because the database is away is not kept."""
        with self._writing:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            for one in waiting.values():
                with self._store.begin() as tx:
                    tx.events.reject(one.told(), KEEP, KEEP_BYTES)
        return sum(len(one.rejects) for one in waiting.values())
