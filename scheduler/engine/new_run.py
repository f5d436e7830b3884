"""A run to insert, as its job wants it: the one place that knows what a run takes from its job's definition."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler.core.ids import new_id
from scheduler.core.job import Job
from scheduler.core.model import Cause, NewRun


def new_run(
    job: Job, cause: Cause, now: datetime, key: str | None = None, instant: datetime | None = None, **more: Any
) -> NewRun:
    """`key` None: a run like no other, known by its id. `instant`: the occurrence that it is. `more`: what else is
    known of it (payload, note, author …)."""
    identity = new_id()
    return NewRun(
        id=identity,
        job=job.name,
        key=key if key is not None else identity,
        cause=cause,
        created_at=now,
        queue=job.queue,
        priority=job.priority,
        lock=job.lock,
        scheduled_for=instant,
        **more,
    )
