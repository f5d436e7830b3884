"""The deadline of a job: by when it must have succeeded, computed in this one place.

It is the earliest occurrence that lies after the latest success and is not excused, plus `grace`. Excused are paused
instants, blackouts, acknowledged misses, and overlap skips while the blocking run was younger than `grace`; never
failures, lost or canceled runs, missed instants or those that waited too long for a lock. An excuse never settles an
earlier occurrence.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from scheduler.core.model import Blackout, Job, Pause

_TICK = timedelta(microseconds=1)
_NEVER = datetime.max.replace(tzinfo=UTC)


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
    pauses, excused = list(pauses), list(excused)
    instant = job.schedule.after(settled_until)
    while instant is not None:
        end = max(
            (
                *(_pause_end(pause, instant) for pause in pauses),
                *(_blackout_end(blackout, instant) for blackout in job.blackouts),
                *(last + _TICK for first, last in excused if first <= instant <= last),
            ),
            default=instant,
        )
        if end <= instant:
            return instant + job.watch.grace
        instant = job.schedule.after(end - _TICK) if end < _NEVER else None
    return None


def _pause_end(pause: Pause, instant: datetime) -> datetime:
    """When the excuse of that pause ends; `instant` itself if it does not cover it."""
    until = pause.until or _NEVER
    return until if pause.start <= instant < until else instant


def _blackout_end(blackout: Blackout, instant: datetime) -> datetime:
    if blackout.schedule is not None and blackout.length is not None:
        start = blackout.schedule.before(instant + _TICK)
        return max(instant, start + blackout.length) if start is not None else instant
    if blackout.start is not None and blackout.end is not None and blackout.start <= instant < blackout.end:
        return blackout.end
    return instant
