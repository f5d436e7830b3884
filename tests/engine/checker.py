"""Every instant once: compares the rows of the ledger with the schedules, knowing nothing of the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from scheduler.core.queries import RunFilter
from scheduler.core.schedule import Schedule

ALL = 1_000_000


def recorded(store: Any, job: str, schedule: Schedule) -> Counter[datetime]:
    """How many entries each instant has: runs of any status, and the instants of skipped ranges."""
    found: Counter[datetime] = Counter()
    with store.queries() as queries:
        entries = queries.history(RunFilter(jobs=(job,)), limit=ALL).entries
    for entry in entries:
        if entry.skip is not None:
            inside = list(schedule.between(entry.skip.first, entry.skip.last))
            assert len(inside) == entry.skip.count, f"{entry.skip} counts wrongly: {len(inside)}"
            found.update(inside)
        elif entry.run.scheduled_for is not None:
            found[entry.run.scheduled_for] += 1
    return found


def faults(store: Any, job: str, expressions: str | list[str], since: datetime, until: datetime) -> Iterator[str]:
    """What is wrong with the instants of `(since, until]`, in words."""
    given = (expressions,) if isinstance(expressions, str) else tuple(expressions)
    schedule = Schedule(given, "UTC", "cron", job)
    found = recorded(store, job, schedule)
    expected = {instant for instant in schedule.between(since, until) if instant > since}
    for instant in sorted(expected | {one for one in found if since < one <= until}):
        if instant not in expected:
            yield f"{job}: {instant} is recorded but not in the schedule"
        elif found[instant] != 1:
            yield f"{job}: {instant} has {found[instant]} entries"
