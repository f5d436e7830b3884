"""Keeps the stored deadline of each job equal to what core.deadline says of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler.core.deadline import deadline
from scheduler.core.model import Job, SkipReason
from scheduler.core.ports import Transaction


def refresh_deadlines(tx: Transaction, jobs: Sequence[Job], now: datetime) -> None:
    """Recomputes and stores the deadlines of `jobs`."""
    watched = [job for job in jobs if job.schedule is not None]
    if not watched:
        return
    names = [job.name for job in watched]
    states = tx.jobs.states(names)
    oldest = min((s.settled_until or s.since for s in states.values()), default=now)
    pauses = tx.jobs.pauses(names, oldest)
    deadlines: dict[str, datetime | None] = {}
    for job in watched:
        state = states.get(job.name)
        if state is None:
            continue
        settled = state.settled_until or state.since
        own = [pause for pause in pauses if pause.job == job.name]
        deadlines[job.name] = deadline(job, settled, own, _excused(tx, job, settled, now))
    changed = {name: at for name, at in deadlines.items() if at != states[name].deadline_at}
    if changed:
        tx.jobs.set_deadlines(changed)


def _excused(tx: Transaction, job: Job, settled: datetime, now: datetime) -> list[tuple[datetime, datetime]]:
    """Overlap skips since `settled` whose blocking run was younger than `grace` at that instant."""
    assert job.schedule is not None
    first = job.schedule.after(settled)
    if first is None or first > now:
        return []
    _, skips = tx.ledger.entries(job.name, first, now)
    result: list[tuple[datetime, datetime]] = []
    for skip in skips:
        if skip.reason is not SkipReason.OVERLAP or skip.blocked_by is None:
            continue
        blocker = tx.runs.get(skip.blocked_by)
        if blocker is None:
            continue
        until = (blocker.started_at or blocker.created_at) + job.watch.grace
        if skip.first < until:
            result.append((skip.first, min(skip.last, until)))
    return result
