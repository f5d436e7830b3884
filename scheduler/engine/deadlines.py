"""Keeps the stored deadline of each job equal to what core.deadline says of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from scheduler.core.deadline import deadline
from scheduler.core.job import Job
from scheduler.core.model import JobState, Pause
from scheduler.core.ports import Transaction

_TICK = timedelta(microseconds=1)


def refresh_deadlines(
    tx: Transaction, jobs: Sequence[Job], now: datetime, states: Mapping[str, JobState] | None = None
) -> dict[str, datetime | None]:
    """Recomputes and stores the deadlines of `jobs`; what they are then, by name. `states`: how they stand, if that is
    known already."""
    if states is None:
        states = tx.jobs.states([job.name for job in jobs]) if jobs else {}
    watched = [
        job
        for job in jobs
        if job.name in states and (job.schedule is not None or states[job.name].deadline_at is not None)
    ]
    if not watched:
        return {}
    names = [job.name for job in watched]
    settled = {name: states[name].settled_until or states[name].since for name in names}
    pauses: dict[str, list[Pause]] = {}
    for pause in tx.jobs.pauses(names, min(settled.values())):
        pauses.setdefault(pause.job, []).append(pause)
    excused = _excused(tx, watched, settled, now)
    for ack in tx.jobs.acks(names, min(settled.values())):
        excused.setdefault(ack.job, []).append((ack.first, ack.last))
    deadlines: dict[str, datetime | None] = {}
    for job in watched:
        deadlines[job.name] = deadline(job, settled[job.name], pauses.get(job.name, ()), excused.get(job.name, ()))
    changed = {name: at for name, at in deadlines.items() if at != states[name].deadline_at}
    if changed:
        tx.jobs.set_deadlines(changed)
    return deadlines


def _excused(
    tx: Transaction, jobs: Sequence[Job], settled: Mapping[str, datetime], now: datetime
) -> dict[str, list[tuple[datetime, datetime]]]:
    """Per job the overlap skips since its last success whose blocking run was younger than `grace` at that instant."""
    behind = {job.name: settled[job.name] for job in jobs if _owes(job, settled[job.name], now)}
    grace = {job.name: job.watch.grace for job in jobs}
    excused: dict[str, list[tuple[datetime, datetime]]] = {}
    for skip, began in tx.ledger.overlaps(behind):
        until = began + grace[skip.job]
        if skip.first < until:
            excused.setdefault(skip.job, []).append((skip.first, min(skip.last, until - _TICK)))
    return excused


def _owes(job: Job, settled: datetime, now: datetime) -> bool:
    """Whether any instant since the last success has come: only then can one have been skipped."""
    first = job.schedule.after(settled) if job.schedule is not None else None
    return first is not None and first <= now
