"""Retrying by hand: a finished run again, a waiting one at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from scheduler.core.errors import NotFound, Refused, SchedulerError
from scheduler.core.ids import short
from scheduler.core.job import Job
from scheduler.core.model import Cause, Run, Status, WaitsFor
from scheduler.core.ports import Transaction
from scheduler.core.source import Order
from scheduler.engine.find import startable, stored_run
from scheduler.engine.new_run import new_run


def retry(tx: Transaction, run: str, job_of: Callable[[str], Job], reason: str, author: str, now: datetime) -> Run:
    """A new run of a finished one, with its payload; a run that waits for its next attempt need not wait any longer for
    its time (for a lock, a place or the end of a pause it does). Who wanted that, and why, stays with it.
    `job_of` gives the job of that name, or raises NotFound. Raises NotFound or Refused before anything is written."""
    old = stored_run(tx, run)
    definition = startable(job_of(old.job))
    if old.status is Status.PENDING and old.attempt > 0:
        done = "retried at once" if old.waits_for is WaitsFor.TIME else "retry asked for"
        tx.runs.hasten(run, f"{done} by {author}" + (f": {reason}" if reason else ""), now)
        return stored_run(tx, run)
    if not old.status.final:
        raise Refused(f"run {short(run)} is not over: {old.status}", hint=f"schedctl cancel {short(run)}")
    new = new_run(
        definition,
        Cause.RETRY,
        now,
        payload=old.payload,
        has_payload=old.has_payload,
        retry_of=old.id,
        note=reason,
        author=author,
        event=old.event,
    )
    on_event = definition.on_event
    if old.rank is not None and on_event is not None and on_event.order is Order.SUBJECT:
        # It has its place in the line of its subject again.
        new = replace(new, lock=old.lock, rank=old.rank)
    tx.runs.insert([new])
    return stored_run(tx, new.id)


def retry_each(
    tx: Transaction, now: datetime, *, runs: Sequence[str], job_of: Callable[[str], Job], reason: str, author: str
) -> list[tuple[str, Run | SchedulerError]]:
    """The same for many, in their order; what is wrong with one of them is its answer, and concerns it alone."""
    done: list[tuple[str, Run | SchedulerError]] = []
    for run in runs:
        try:
            done.append((run, retry(tx, run, job_of, reason, author, now)))
        except (NotFound, Refused) as error:
            done.append((run, error))
    return done
