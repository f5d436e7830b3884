"""Queues in the store: who is in line, and the tokens of their rates."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from scheduler.core.value_object import value_object


@value_object
class Line:
    """Before a run of some priority in a queue: runs that are ready (counted up to a thousand), and those that run."""

    ahead: int
    running: int


class Queues(Protocol):
    def line(self, queue: str, priority: int) -> Line:
        """What a new run of that priority finds before it."""
        ...

    def take(self, queue: str, now: datetime) -> float | None:
        """Takes one token. None: it was there; else the seconds until there is one. Raises NotFound for a queue that
        does not exist, Refused for one without a rate."""
        ...

    def next_token(self, queues: Collection[str] | None, now: datetime) -> float | None:
        """Seconds until the first of these queues (None: all) has a token for which a run waits that is ready. None: no
        run waits for a token, whatever else it may wait for."""
        ...
