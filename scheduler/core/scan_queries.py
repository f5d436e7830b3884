"""What people are shown of scans: answered by the store, as in core.queries."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from scheduler.core.scan import Aside, Hole, ScanReport, ScanState
from scheduler.core.value_object import value_object


@value_object
class ScanView:
    """A scan job: where it stands (None: it has never begun), and its last report that is none of a dry run."""

    job: str
    state: ScanState | None = None
    last: ScanReport | None = None


class ScanQueries(Protocol):
    def scans(self, jobs: Collection[str]) -> list[ScanView]:
        """Of each of these jobs, in their order."""
        ...

    def scan_reports(self, job: str | None = None, run: str | None = None, limit: int = 20) -> list[ScanReport]:
        """The newest first, also of jobs that are gone."""
        ...

    def scan_holes(self, source: str | None = None) -> list[Hole]:
        """Oldest first."""
        ...

    def scan_asides(self, job: str | None, limit: int, shown: int) -> list[Aside]:
        """The newest first, each with so many characters of its text."""
        ...

    def webhooks_overdue(self, source: str, since: datetime, until: datetime) -> int:
        """Events that a scan found, whose webhook has not come and that occurred in `[since, until)`."""
        ...
