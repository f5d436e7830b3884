"""Scans in the store: where each stands, what they reported, what cannot be proven."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from scheduler.core.compensator import Undecodable
from scheduler.core.scan import Hole, ScanReport, ScanState


class Scans(Protocol):
    def state(self, job: str, *, lock: bool = False) -> ScanState | None:
        """With `lock`, nobody else changes it until the transaction ends."""
        ...

    def save(self, state: ScanState) -> None:
        """Inserts or replaces."""
        ...

    def report(self, report: ScanReport) -> None:
        """Keeps it, and its holes; a hole that follows directly on one of the same job and reason extends that."""
        ...

    def reports(self, job: str | None, limit: int) -> list[ScanReport]:
        """The newest first."""
        ...

    def holes(self, source: str | None = None, since: datetime | None = None) -> list[Hole]:
        """Those that end after `since`, oldest first."""
        ...

    def states(self) -> list[ScanState]: ...

    def put_aside(self, job: str, source: str, items: Sequence[Undecodable], now: datetime, keep: int) -> None:
        """Keeps raw items of a list that nobody could read; of a job the newest `keep`, the same text once."""
        ...

    def aside(self, source: str, limit: int) -> list[tuple[str, datetime, Undecodable]]:
        """(job, found at, item), the newest first."""
        ...
