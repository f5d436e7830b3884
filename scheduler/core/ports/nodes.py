"""Nodes in the store: which daemons there are, and which of them may still hold runs."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from scheduler.core.hints import Word
from scheduler.core.model import Node


class Nodes(Protocol):
    def hold(self, node: str) -> bool:
        """Locks the node's row until the transaction ends. False: it is not live; it must not plan or claim."""
        ...

    def hold_alone(self, node: str) -> None:
        """Waits until no other transaction holds the node's row, and locks it until the transaction ends: what is read
        after this shows all that those did."""
        ...

    def register(self, node: Node, now: datetime) -> None: ...

    def renew(
        self, node: str, now: datetime, *, generation: int, clock_offset: float = 0.0, word: Word | None = None
    ) -> bool:
        """Raises the beat. False: this node was declared dead or stopped; it holds nothing any more."""
        ...

    def mark(self, node: str, state: str, now: datetime) -> bool:
        """live → stopping → stopped. False if it is dead already."""
        ...

    def declare_dead(self, node: str, beat: int, now: datetime) -> bool:
        """True if its beat is still `beat` and it was not stopped: from now on it holds nothing."""
        ...

    def all(self) -> list[Node]: ...

    def prune(self, before: datetime) -> int: ...
