"""Connecting to a server that may be away: one attempt at a time, further and further apart, for all threads."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import psycopg

T = TypeVar("T")

FIRST, LONGEST = 0.1, 0.8
"""Seconds between two attempts: twice as long each time. Whoever needs the server turns once a second, and is to be at
work within 3 s after it answers."""


class Reconnect(Generic[T]):
    """While nothing has failed everybody connects. After a failure one thread tries, and none before the wait is over;
    the others are told at once what the last one met."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._met: psycopg.OperationalError | None = None
        self._failures = 0
        self._next = 0.0
        self._trying = False

    def connected(self, connect: Callable[[], T]) -> T:
        """What `connect` returns. Raises what it raises, or an error like that of the last attempt."""
        with self._lock:
            if self._met is not None:
                if self._trying or self._monotonic() < self._next:
                    raise type(self._met)(*self._met.args)
                self._trying = True
        try:
            connection = connect()
        except BaseException as error:
            self._failed(error)
            raise
        with self._lock:
            self._met, self._failures, self._trying = None, 0, False
        return connection

    def _failed(self, error: BaseException) -> None:
        with self._lock:
            self._trying = False
            if isinstance(error, psycopg.OperationalError):
                wait = min(LONGEST, FIRST * 2**self._failures)
                spread = random.uniform(0.75, 1.0)  # noqa: S311 -- so that nodes do not come all at once
                self._met, self._next = error, self._monotonic() + wait * spread
                self._failures = min(self._failures + 1, 10)
