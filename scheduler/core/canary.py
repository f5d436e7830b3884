"""The canary: a job that every installation has, which does nothing and must succeed every minute.

It goes the way of every run (planned, locked, claimed, prepared, carried out, settled), so that whatever breaks on
that way is noticed by its silence. A name that begins with `_` cannot be written in jobs.yaml.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from scheduler.core.job import Configuration
from scheduler.core.model import JobState
from scheduler.core.value_object import value_object

CANARY = "_canary"
"""The name of the job and of the queue that it alone uses: what limits other jobs does not hold it up."""
KIND = "canary"
"""The kind of its action."""
EVERY = timedelta(minutes=1)
GRACE = timedelta(minutes=2)
"""So much later than that its next success may be seen."""


@value_object
class CanaryFacts:
    """`last_success_at` and `took` (seconds from its instant until it was recorded) of the last success; None: there
    was none. `deadline_at`: when the next must have been seen; None: nothing is expected now."""

    last_success_at: datetime | None
    took: float | None
    deadline_at: datetime | None
    late: bool


def seen(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of jobs without the canary's: nobody wrote that."""
    return tuple(name for name in names if name != CANARY)


def written(names: Collection[str]) -> int:
    """How many of these somebody wrote."""
    return len(names) - (CANARY in names)


def lacks_canary(states: Mapping[str, JobState], file: Configuration) -> bool:
    """The ledger is one of a release that had none, or another one, though the same text is in force."""
    canary, there = file.jobs.get(CANARY), states.get(CANARY)
    if canary is None:
        return False
    return there is None or there.removed_at is not None or there.fingerprint != canary.fingerprint
