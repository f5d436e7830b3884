"""What an edit of a job settles of what was expected of it before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from scheduler.core.deadline import deadline
from scheduler.core.job import Job
from scheduler.core.model import JobState

_TICK = timedelta(microseconds=1)


def settled_by_edit(
    job: Job,
    was: Job | None,
    before: JobState,
    former: Mapping[str, object] | None,
    spec: Mapping[str, object] | None,
    now: datetime,
) -> datetime | None:
    """Up to which instant nothing is expected any more of a job that was edited. All is over if it comes back, or its
    author changed when it is due. Else what was excused stays excused, whatever becomes of `grace`, `heartbeat` and
    `blackouts`, and what is owed stays owed, unless it would be late by the edit alone. So what was missed stays
    missed, and no edit makes a miss. Another release of the zone database is no edit.

    `was` is the job as it was (None: nobody can read that any more), `former` and `spec` what its schedule version says
    before and after (None: it has none)."""
    late = before.deadline_at is not None and before.deadline_at <= now
    if before.removed_at is not None or (not late and (former and _meant(former)) != (spec and _meant(spec))):
        return now
    owed = None if before.deadline_at is None else before.deadline_at - (was or job).watch.grace
    if former != spec and not late and (owed is None or owed > now):
        return now
    if was is not None and _expects(was) == _expects(job):
        return before.settled_until
    settled = before.settled_until or before.since
    if was is not None and owed is not None and former == spec:
        settled = max(settled, min(owed - _TICK, now))
    # By pauses, acknowledgements and overlaps it may be later, never earlier.
    earliest = deadline(job, settled, ())
    return now if not late and earliest is not None and earliest <= now else settled


def _meant(spec: Mapping[str, object]) -> dict[str, object]:
    """What the author wrote, without what computes it."""
    return {key: value for key, value in spec.items() if key not in ("tzdata", "code")}


def _expects(job: Job) -> tuple[object, ...]:
    """What its deadline depends on beside its schedule."""
    black = {(one.start, one.end, one.schedule, one.length) for one in job.blackouts}
    return job.watch.heartbeat, job.watch.grace, black
