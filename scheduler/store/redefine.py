"""Waiting runs follow their job's definition: an attempt starts under the one in force then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import and_, case, literal, null, or_, select, update

from scheduler.core.job import Job, Overlap, lock_key
from scheduler.core.model import Json, Run, Status, WaitsFor
from scheduler.core.source import OnDead, Order
from scheduler.store import tables as t
from scheduler.store.bulk import update_each
from scheduler.store.insert import open_locks
from scheduler.store.kept_locks import kept_by, let_go
from scheduler.store.promote import next_in_line
from scheduler.store.session import CHUNK, Session


def redefine(session: Session, job: Job) -> int:
    """Gives the waiting runs of `job`, whose row is locked, its queue, priority and lock; the number that changed. A
    queue that is not there leaves them in `default`. Dead letters that hold up others do so no longer, unless the job
    says so.

    What is RUNNING keeps the lock with which it started, and the next run waits for its end (IS_RUNNING_BESIDE)."""
    if not _holds(job):
        let_go(session, kept_by(session, job.name))
    known = session.rows(select(t.queues.c.name).where(t.queues.c.name == job.queue)).scalar()
    queue = known or "default"
    old = and_(
        t.runs.c.job == job.name,
        t.runs.c.status == t.PENDING,
        or_(
            t.runs.c.queue != queue,
            t.runs.c.priority != job.priority,
            and_(t.runs.c.rank.is_(None), t.runs.c.lock.is_distinct_from(job.lock)),
        ),
    )
    former = set(session.rows(select(t.runs.c.lock).where(old).distinct()).scalars())
    if not former:
        return 0
    open_locks(session, set() if job.lock is None else {job.lock})
    waits = WaitsFor.LOCK.value if job.lock is not None else None
    changed = 0
    while True:
        some = select(t.runs.c.seq).where(old).order_by(t.runs.c.seq).limit(CHUNK).with_for_update()
        seqs = list(session.rows(some).scalars())
        if not seqs:
            break
        changed += session.write(
            update(t.runs)
            .where(t.runs.c.seq.in_(seqs))
            .values(
                queue=queue,
                priority=job.priority,
                lock=case((t.runs.c.rank.is_(None), literal(job.lock, t.runs.c.lock.type)), else_=t.runs.c.lock),
                waits_for=case(
                    (t.runs.c.waits_for.in_((WaitsFor.TIME.value, WaitsFor.PAUSE.value)), t.runs.c.waits_for),
                    (t.runs.c.rank.is_not(None), literal(WaitsFor.LOCK.value)),
                    else_=null() if waits is None else literal(waits),
                ),
            )
        )
    next_in_line(session, {key for key in (*former, job.lock) if key is not None})
    return changed


def rejoin(session: Session, runs: Sequence[Run]) -> list[Run]:
    """The same for runs that have just gone from RUNNING to PENDING, and whose jobs' rows are locked: their jobs may
    have been redefined while they ran. All of `runs`, in their order, as they are then."""
    back = {run.job for run in runs if run.status is Status.PENDING}
    if not back:
        return list(runs)
    jobs = t.jobs.c
    written = session.rows(select(jobs.name, jobs.definition).where(session.among(jobs.name, back)))
    # Of a job that runs elsewhere by now, or that nobody knows any more, there is nothing to follow.
    definitions = {name: definition for name, definition in written if "overlap" in definition}
    after = [
        _as_defined(run, definitions[run.job]) if run.status is Status.PENDING and run.job in definitions else run
        for run in runs
    ]
    changed = [new for new, run in zip(after, runs, strict=True) if new is not run]
    open_locks(session, {run.lock for run in changed if run.lock is not None})
    names = ("seq", "queue", "priority", "lock", "waits_for")
    update_each(session, t.runs, ("seq",), [{name: getattr(run, name) for name in names} for run in changed])
    return after


def _as_defined(run: Run, definition: Mapping[str, Json]) -> Run:
    queue, priority, lock = str(definition["queue"]), int(definition["priority"]), run.lock
    if run.rank is None:
        lock = lock_key(run.job, Overlap(definition["overlap"]), definition.get("lock"))
    if (queue, priority, lock) == (run.queue, run.priority, run.lock):
        return run
    waits_for = run.waits_for
    if waits_for is not WaitsFor.TIME:
        waits_for = None if lock is None else WaitsFor.LOCK
    return replace(run, queue=queue, priority=priority, lock=lock, waits_for=waits_for)


def _holds(job: Job) -> bool:
    """Whether its dead letters hold up the others of their subject."""
    told = job.on_event
    return told is not None and told.order is Order.SUBJECT and told.on_dead is OnDead.HOLD
