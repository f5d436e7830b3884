"""Acknowledging a miss: somebody knows of it, and nothing is expected of it any more."""

from __future__ import annotations

from datetime import datetime

from scheduler.core.errors import Refused
from scheduler.core.job import Configuration, Job
from scheduler.core.model import Ack, JobState
from scheduler.core.ports import Transaction
from scheduler.core.state import Why
from scheduler.engine.flips import Flipped, amend_deadlines


def acknowledge(
    tx: Transaction, job: Job, state: JobState, reason: str, author: str, configuration: Configuration, now: datetime
) -> tuple[Ack, Flipped]:
    """Excuses every instant that has come and for which a success is still expected. The next one counts again. Refused
    if there is none."""
    owed = None if state.deadline_at is None else state.deadline_at - job.watch.grace
    if owed is None or owed > now:
        what = "nothing is expected of it now" if owed is None else "it has succeeded since its last instant"
        raise Refused(f"{job.name} has missed nothing: {what}", hint=f"schedctl describe {job.name}")
    ack = Ack(job.name, owed, now, now, reason, author)
    tx.jobs.ack(ack, settled=state.settled_until or state.since)
    return ack, amend_deadlines(tx, [job], now, Why.ACK, configuration)
