"""The canary: a job that every installation has, which does nothing and must succeed every minute.

It goes the way of every run (planned, locked, claimed, prepared, carried out, settled), so that whatever breaks on
that way is noticed by its silence. A name that begins with `_` cannot be written in jobs.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

CANARY = "_canary"
"""The name of the job and of the queue that it alone uses: what limits other jobs does not hold it up."""
KIND = "canary"
"""The kind of its action."""
EVERY = timedelta(minutes=1)
GRACE = timedelta(minutes=2)
"""So much later than that its next success may be seen."""


@dataclass(frozen=True, slots=True)
class CanaryFacts:
    """`last_success_at` and `took` (seconds from its instant until it was recorded) of the last success; None: there
    was none. `deadline_at`: when the next must have been seen; None: nothing is expected now."""

    last_success_at: datetime | None
    took: float | None
    deadline_at: datetime | None
    late: bool
