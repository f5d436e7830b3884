"""New runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, literal, or_, select, union_all, update

from scheduler.core.model import Cause, NewRun, Status, WaitsFor
from scheduler.core.requests import Due
from scheduler.store import tables as t
from scheduler.store.bulk import Owned, insert_all, insert_new
from scheduler.store.kept_locks import let_go
from scheduler.store.pauses import free_jobs
from scheduler.store.promote import OLDEST_READY, OLDEST_WAITER
from scheduler.store.session import Session, listed


def insert(
    session: Session, runs: Sequence[NewRun], known: Mapping[str, Due] | None = None
) -> dict[str, WaitsFor | None]:
    """Inserts them in this order; the ids that are new, with what each waits for. One whose (job, key) exists changes
    nothing, and neither does an instant before the job's `pruned_before`: what was there is gone from the ledger.
    `known`: of these jobs nobody is asked (see the port)."""
    known = known or {}
    runs = _not_pruned(session, runs, known)
    if not runs:
        return {}
    begun = {run.job for run in runs if run.scheduled_for is not None}
    _end_skips(session, {name for name in begun if name not in known or known[name].open_skip})
    ordered = any(run.rank is not None for run in runs)
    line = open_locks(session, {run.lock for run in runs if run.lock is not None}, hold=ordered)
    around = _Around(session, runs, known)
    rows = []
    placed: dict[str, WaitsFor | None] = {}
    for run in runs:
        waits_for = _waits_for(run, around, line)
        if run.lock is not None and waits_for in (None, WaitsFor.LOCK):
            line.add(run.lock)
        placed[run.id] = waits_for
        rows.append(row_of(run, run.queue if run.queue in around.queues else "default", waits_for))
    carried = [{"run": run.id, "payload": run.payload} for run in runs if run.payload is not None]
    new = insert_new(session, t.runs, "id", rows, Owned(t.payloads, "run", carried))
    placed = {one: waits_for for one, waits_for in placed.items() if one in new}
    retried = [run.retry_of for run in runs if run.retry_of is not None and run.id in placed]
    if retried:
        dead = (session.among(t.runs.c.id, retried), t.DEAD_LETTER)
        session.write(update(t.runs).where(*dead).values(discarded_at=runs[0].created_at))
        let_go(session, retried)
    return placed


def _not_pruned(session: Session, runs: Sequence[NewRun], known: Mapping[str, Due]) -> Sequence[NewRun]:
    edges = {name: one.state.pruned_before for name, one in known.items() if one.state.pruned_before is not None}
    edges |= pruned_before(session, {run.job for run in runs if run.scheduled_for is not None} - known.keys())
    if not edges:
        return runs
    return [
        run for run in runs if run.scheduled_for is None or run.job not in edges or run.scheduled_for >= edges[run.job]
    ]


def pruned_before(session: Session, jobs: set[str]) -> dict[str, datetime]:
    """Per job: no instant before this one is recorded any more."""
    if not jobs:
        return {}
    table = t.jobs.c
    query = select(table.name, table.pruned_before).where(
        session.among(table.name, jobs), table.pruned_before.is_not(None)
    )
    return dict(session.rows(query).all())


def _end_skips(session: Session, jobs: set[str]) -> None:
    """An occurrence of these jobs gets a run: the next skip begins a new range."""
    if not jobs:
        return
    table = t.jobs.c
    query = (
        select(table.name).where(session.among(table.name, jobs), table.last_skip_id.is_not(None)).order_by(table.name)
    )
    names = session.rows(query.with_for_update(key_share=True)).scalars().all()
    if names:
        session.write(update(t.jobs).where(session.among(table.name, names)).values(last_skip_id=None))


def open_locks(session: Session, keys: set[str], *, hold: bool = False) -> set[str]:
    """Makes the rows of these locks; those that are held or have somebody in line. With `hold`, nobody deletes one that
    is there until the transaction ends: those of subjects go when they are idle."""
    if not keys:
        return set()
    asked = session.listing(keys)
    if hold:
        session.rows(_held_locks(session.kind), listed=asked).all()
    there = dict(session.rows(_lines(session.kind), listed=asked).all())
    new_locks(session, keys - there.keys())
    return {key for key, busy in there.items() if busy}


def new_locks(session: Session, keys: Collection[str]) -> None:
    """Makes the rows of these locks, as far as they are not there."""
    insert_all(session, t.locks, [{"key": key, "fence": 0, "run": None} for key in sorted(keys)], new_only=True)


@cache
def _held_locks(kind: str) -> Select[Any]:
    query = select(t.locks.c.key).where(listed(kind, t.locks.c.key)).order_by(t.locks.c.key)
    return query.with_for_update(read=True, key_share=True)


@cache
def _lines(kind: str) -> Select[Any]:
    lock = t.locks.c
    busy = or_(lock.run.is_not(None), OLDEST_READY.is_not(None), OLDEST_WAITER.is_not(None))
    return select(lock.key, busy).where(listed(kind, lock.key))


@cache
def _queues_and_free(kind: str) -> Select[Any]:
    """The names of queues, and of jobs that are free."""
    jobs = free_jobs(kind).add_columns(literal(False).label("queue"))
    return select(union_all(select(t.queues.c.name, literal(True).label("queue")), jobs).subquery())


class _Around:
    """What runs find that are made now: which queues there are, and which of them must wait for a pause from the moment
    of their creation."""

    def __init__(self, session: Session, runs: Sequence[NewRun], known: Mapping[str, Due]) -> None:
        self._known = known
        self.queues: set[str] = set()
        self._free: set[tuple[str, datetime]] = set()
        asked = {run.job for run in runs} - known.keys()
        for at in {run.created_at for run in runs}:
            found = session.rows(_queues_and_free(session.kind), listed=session.listing(asked), now=at)
            for name, queue in found:
                if queue:
                    self.queues.add(name)
                else:
                    self._free.add((name, at))

    def hold(self, run: NewRun) -> bool:
        if run.cause is Cause.MANUAL:
            return False
        one = self._known.get(run.job)
        if one is None:
            return (run.job, run.created_at) not in self._free
        return (
            not one.state.enabled
            or one.state.removed_at is not None
            or any(
                pause.start <= run.created_at and (pause.until is None or pause.until > run.created_at)
                for pause in one.pauses
            )
        )


def _waits_for(run: NewRun, around: _Around, line: set[str]) -> WaitsFor | None:
    if run.not_before is not None and run.not_before > run.created_at:
        return WaitsFor.TIME
    if around.hold(run):
        return WaitsFor.PAUSE
    return WaitsFor.LOCK if run.lock in line else None


def row_of(run: NewRun, queue: str, waits_for: WaitsFor | None) -> dict[str, Any]:
    """All columns of a run that is PENDING and was never tried."""
    return {
        "id": run.id,
        "job": run.job,
        "key": run.key,
        "cause": run.cause.value,
        "status": Status.PENDING.value,
        "created_at": run.created_at,
        "queue": queue,
        "priority": run.priority,
        "attempt": 0,
        "failures": 0,
        "lost": 0,
        "lock": run.lock,
        "scheduled_for": run.scheduled_for,
        "not_before": run.not_before,
        "waits_for": None if waits_for is None else waits_for.value,
        # a payload of null is one, too
        "has_payload": run.has_payload or run.payload is not None,
        "retry_of": run.retry_of,
        "note": run.note,
        "author": run.author,
        "fence": 0,
        "event": run.event,
        "rank": run.rank,
        "trace": run.trace,
    }
