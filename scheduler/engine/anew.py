"""Whether an edit of a job ends what was expected of it before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from scheduler.core.job import Job
from scheduler.core.model import JobState


def begins_anew(
    job: Job,
    was: Job | None,
    before: JobState,
    former: Mapping[str, object] | None,
    spec: Mapping[str, object] | None,
    now: datetime,
) -> bool:
    """Whether nothing that came before `now` is expected of the job any more: it comes back, or its author changed when
    it is due. What was missed stays missed, and no edit makes a miss. Another release of the zone database is no edit:
    a success that is owed stays owed.

    `was` is the job as it was (None: nobody can read that any more), `former` and `spec` what its schedule version says
    before and after (None: it has none)."""
    if before.removed_at is not None:
        return True
    if before.deadline_at is not None and before.deadline_at <= now:
        return False
    if (former and _meant(former)) != (spec and _meant(spec)):
        return True
    if former != spec:
        return before.deadline_at is None or before.deadline_at - job.watch.grace > now
    if job.schedule is None or (was is not None and _expects(was) == _expects(job)):
        return False
    owed = job.schedule.after(before.settled_until or before.since)
    return owed is not None and owed + job.watch.grace <= now


def _meant(spec: Mapping[str, object]) -> dict[str, object]:
    """What the author wrote, without what computes it."""
    return {key: value for key, value in spec.items() if key not in ("tzdata", "code")}


def _expects(job: Job) -> tuple[bool, timedelta]:
    return job.watch.heartbeat, job.watch.grace
