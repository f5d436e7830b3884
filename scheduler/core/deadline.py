"""The deadline of a job: by when it must have succeeded, computed in this one place.

It is the earliest occurrence that lies after the latest success and is not excused, plus `grace`. Excused are paused
instants, blackouts, acknowledged misses, and overlap skips while the blocking run was younger than `grace`; never
failures, lost or canceled runs, missed instants or those that waited too long for a lock. An excuse never settles an
earlier occurrence.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from scheduler.core.excuses import FOREVER, blackout_stretches, pause_stretches
from scheduler.core.job import Blackout, Job
from scheduler.core.model import Pause
from scheduler.core.schedule import Schedule

_TICK = timedelta(microseconds=1)

AT_LEAST, AHEAD, AT_MOST = 30, timedelta(days=400), 10_000
"""When every instant lies in a blackout the search ends after AT_LEAST of them that reach AHEAD, or after AT_MOST
stretches of blackout: nothing is expected of such a job."""


def deadline(
    job: Job,
    settled_until: datetime,
    pauses: Iterable[Pause],
    excused: Iterable[tuple[datetime, datetime]] = (),
) -> datetime | None:
    """The instant by which the job must have succeeded, None while nothing is expected of it.

    `settled_until`: the latest instant that a success (or the job's first load) has settled. `excused`: closed ranges
    of instants excused by overlap or by a person.
    """
    if job.schedule is None or not job.enabled or not job.watch.heartbeat:
        return None
    others = [(pause.start, pause.end) for pause in pause_stretches(pauses)]
    others += [(first, last + _TICK) for first, last in excused]
    instant = _outside_blackouts(job.schedule, job.blackouts, settled_until)
    for start, end in sorted(others):
        if instant is None or instant < start:
            break
        if instant < end:
            instant = _outside_blackouts(job.schedule, job.blackouts, end - _TICK) if end < FOREVER else None
    return None if instant is None else instant + job.watch.grace


# While a job does not succeed the same question comes back at each of its instants.
@lru_cache(maxsize=16_384)
def _outside_blackouts(schedule: Schedule, blackouts: tuple[Blackout, ...], after: datetime) -> datetime | None:
    """The first instant later than `after` that lies in no blackout."""
    instant = schedule.after(after)
    if instant is None or not blackouts:
        return instant
    covered = 0
    for number, black in enumerate(blackout_stretches(blackouts, instant, FOREVER)):
        if instant < black.start:
            break
        if number == AT_MOST:
            return None
        if instant < black.end:
            covered += 1
            following = schedule.after(black.end - _TICK)
            if following is None or (covered >= AT_LEAST and following - after > AHEAD):
                return None
            instant = following
    return instant
