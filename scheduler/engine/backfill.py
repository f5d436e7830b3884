"""Backfill: running instants of the past again, or at last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from scheduler.core.commands import Backfilled, LeftOut
from scheduler.core.errors import InvalidInput, Refused
from scheduler.core.job import Job
from scheduler.core.model import Cause, JobState, Status
from scheduler.core.ports import Transaction
from scheduler.core.stamp import to_text
from scheduler.engine.find import startable
from scheduler.engine.new_run import new_run

MOST = 10_000
"""Instants that one request may look at."""
_TICK = timedelta(microseconds=1)


def choose(
    tx: Transaction, job: Job, state: JobState, first: datetime | None, last: datetime, most: int, now: datetime
) -> Backfilled:
    """The instants of the job's schedule in `[first, last]` (None: after its last success) that would run: those that
    have come, and have neither completed nor an unfinished run. Raises InvalidInput or Refused, naming the remedy, for
    none and for too many."""
    startable(job)
    if job.schedule is None:
        raise Refused(f"{job.name} has no schedule, so it has no instants", hint=f"schedctl run-now {job.name}")
    first = first or (state.settled_until or state.since) + _TICK
    if first > last:
        if first > now:
            raise InvalidInput("`from` is still to come: only instants of the past can be run after all")
        raise InvalidInput("`from` is later than `until`", hint="swap them")
    last = min(last, now, *(() if state.next_due_at is None else (state.next_due_at - _TICK,)))
    instants = list(islice(job.schedule.between(first, last), MOST + 1))
    if len(instants) > MOST:
        raise Refused(f"more than {MOST} instants lie in that time", hint="choose a shorter one")
    fates = tx.ledger.fates(job.name, first, last) if instants else {}
    runs, left_out = [], []
    for instant in instants:
        why, run = _objection(instant, fates.get(instant, ()), state)
        if why is None:
            runs.append(instant)
        else:
            left_out.append(LeftOut(instant, why, run))
    if len(runs) > most:
        raise Refused(
            f"{len(runs)} instants would run, at most {most} are made at once",
            hint=f"choose a shorter time, or allow more (--max {len(runs)})",
        )
    return Backfilled(job.name, tuple(runs), tuple(left_out))


def _objection(
    instant: datetime, fates: Sequence[tuple[str, Status]], state: JobState
) -> tuple[str | None, str | None]:
    for run, status in fates:
        if status is Status.COMPLETED:
            return "completed", run
        if not status.final:
            return "unfinished", run
    if state.pruned_before is not None and instant < state.pruned_before:
        return "history is no longer kept", None
    return None, None


def make(tx: Transaction, job: Job, chosen: Backfilled, note: str, author: str, now: datetime) -> tuple[str, ...]:
    """Inserts the runs of the chosen instants, oldest first; their ids."""
    earlier = tx.ledger.backfills(job.name, chosen.instants)
    new = [
        new_run(job, Cause.BACKFILL, now, _key(instant, earlier.get(instant, 0)), instant, note=note, author=author)
        for instant in chosen.instants
    ]
    tx.runs.insert(new)
    return tuple(run.id for run in new)


def _key(instant: datetime, times: int) -> str:
    """An instant may be backfilled again when that failed."""
    key = f"backfill:{to_text(instant)}"
    return key if times == 0 else f"{key}#{times + 1}"
