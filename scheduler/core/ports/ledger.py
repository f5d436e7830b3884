"""The ledger in the store: what became of instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from scheduler.core.model import Skip, Status


class Ledger(Protocol):
    """What `audit` and the deadline compare with the expected set. Backfilled runs do not count: what became of their
    instants before stays true."""

    def entries(self, job: str, first: datetime, last: datetime) -> tuple[list[datetime], list[Skip]]:
        """Instants that have a run, and skips that touch `[first, last]`; both ascending. SKIPPED runs are skips."""
        ...

    def fates(self, job: str, first: datetime, last: datetime) -> dict[datetime, list[tuple[str, Status]]]:
        """Per instant in `[first, last]` that has any: its runs, oldest first, backfilled ones among them."""
        ...

    def backfills(self, job: str, instants: Sequence[datetime]) -> dict[datetime, int]:
        """How often each of these was backfilled before; those that were not are left out."""
        ...

    def overlaps(self, since: Mapping[str, datetime]) -> list[tuple[Skip, datetime]]:
        """Overlap skips of these jobs that reach past the instant given for each, with the start (or, before it, the
        creation) of the run that was in their way."""
        ...

    def totals(self, since: datetime, until: datetime) -> dict[str, tuple[int, dict[str, int]]]:
        """Per job: number of instants in `[since, until]` with a run, and of skipped ones by reason."""
        ...
