"""Generations in the store: what is and was in force, and what the installation remembers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from scheduler.core.job import Queue
from scheduler.core.model import Generation


class Generations(Protocol):
    def newest(self, *, lock: bool = False) -> Generation | None: ...

    def newest_id(self) -> int: ...

    def hold(self) -> int:
        """`newest_id`, and nobody adds a generation until the transaction ends; others may hold it, too. To be asked
        before any row of a job is locked: whoever adds one waits for those."""
        ...

    def hold_at_once(self) -> int | None:
        """The same without waiting, so at any time; None: somebody is about to add one."""
        ...

    def get(self, number: int) -> Generation | None: ...

    def find(self, digest: str) -> Generation | None:
        """The newest generation with that hash."""
        ...

    def add(self, digest: str, files: Mapping[str, str], now: datetime, author: str) -> Generation: ...

    def put_queues(self, queues: Iterable[Queue], now: datetime) -> None:
        """Makes the queue rows equal to these; tokens are kept (at most the burst)."""
        ...

    def value(self, key: str) -> str | None:
        """A named value of the installation: environment, oldest release, last clean audit, clock steps."""
        ...

    def set_value(self, key: str, value: str) -> None: ...

    def swap_value(self, key: str, old: str | None, new: str) -> bool:
        """Compare-and-set; `old` None: it must be absent."""
        ...
