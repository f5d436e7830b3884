"""Runs that wait compete again.

Settling and cancelling wake the next in line at once; the sweep looks at all that waits, so that a wake-up that was
missed (two transactions that did not see each other) costs a second, not a run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, Select, case, func, literal, null, select, update
from sqlalchemy.sql.elements import KeyedColumnElement

from scheduler.core.model import WaitsFor
from scheduler.store import tables as t
from scheduler.store.pauses import held_back
from scheduler.store.session import Session, chunks

SWEEP = 2_000
"""Runs of one kind that one sweep moves at most."""
LOCKS = 1_000
"""Locks that one statement looks at."""


def _oldest(where: ColumnElement[bool]) -> ScalarSelect[int]:
    query = select(func.min(t.runs.c.seq)).where(where, t.runs.c.lock == t.locks.c.key)
    return query.correlate(t.locks).scalar_subquery()


OLDEST_WAITER = _oldest(t.WAITS_LOCK)
"""In a query on locks: the number of the oldest run that waits for the lock."""
OLDEST_READY = _oldest(t.IN_LINE)
"""In a query on locks: the number of the oldest run that waits for nothing but a place."""
FIRST_ORDERED = (
    select(t.runs.c.seq)
    .where(t.IS_ORDERED, t.runs.c.lock == t.locks.c.key)
    .order_by(t.runs.c.rank, t.runs.c.key)
    .limit(1)
    .correlate(t.locks)
    .scalar_subquery()
)
"""In a query on locks: the number of the waiting run whose turn it is by its rank, whatever it waits for. None: none
has a rank, and age decides. While it waits for its next attempt or for the end of a pause the others wait, too."""


@cache
def distinct(column: KeyedColumnElement[str], where: ColumnElement[bool]) -> Select[tuple[str]]:
    """The different values of an indexed column, one seek each however many rows share a value."""
    first = select(func.min(column).label("value")).where(where).cte(f"each_{column.name}", recursive=True)
    following = select(func.min(column)).where(where, column > first.c.value).scalar_subquery().correlate(first)
    each = first.union_all(select(following).where(first.c.value.is_not(None)))
    return select(each.c.value).where(each.c.value.is_not(None))


def promote(session: Session, now: datetime) -> int:
    """Lets runs whose time, lock or pause is over compete again, and gives runs whose queue is gone to `default`; the
    number of runs that moved."""
    moved = _rehome(session)
    moved += _time_is_over(session, now)
    moved += _pause_is_over(session, now)
    waited_for = session.rows(distinct(t.runs.c.lock, t.WAITS_LOCK)).scalars().all()
    return moved + next_in_line(session, waited_for)


def next_in_line(session: Session, keys: Collection[str]) -> int:
    """For each of these locks that is free: the first in its line becomes ready, if it waits for nothing else: by rank
    if there are ranks, else the oldest, unless an older one is ready."""
    seqs = []
    for some in chunks(keys, LOCKS):
        free = (session.among(t.locks.c.key, some), t.locks.c.run.is_(None))
        for oldest, ready, first in session.rows(select(OLDEST_WAITER, OLDEST_READY, FIRST_ORDERED).where(*free)):
            if oldest is None:
                continue
            if first is not None:
                seqs.append(first)
            elif ready is None or oldest < ready:
                seqs.append(oldest)
    return _change(session, _waiting_for_lock(session, sorted(seqs)), waits_for=None)


def _waiting_for_lock(session: Session, seqs: Sequence[int]) -> Sequence[int]:
    """Those of these runs that wait for their lock alone, ours until the transaction ends."""
    if session.kind != "sqlite" or not seqs:
        return session.unheld(t.WAITS_LOCK, seqs)
    query = select(t.runs.c.seq).where(session.among(t.runs.c.seq, seqs), t.WAITS_LOCK)
    return session.rows(query).scalars().all()


def _some(session: Session, where: ColumnElement[bool], order: ColumnElement[Any]) -> Sequence[int]:
    """At most one sweep of rows, locked, without waiting for those that somebody else is changing."""
    query = select(t.runs.c.seq).where(where).order_by(order).limit(SWEEP).with_for_update(skip_locked=True)
    return session.rows(query).scalars().all()


def _change(session: Session, seqs: Sequence[int], **values: Any) -> int:
    """Of rows that are locked: by their numbers alone, which leaves nothing to plan."""
    return session.write(update(t.runs).where(session.among(t.runs.c.seq, seqs)).values(values)) if seqs else 0


def _back_in_line() -> ColumnElement[Any]:
    """What a run waits for when nothing but its lock is left; the sweep over the locks decides whose turn it is."""
    return case((t.runs.c.lock.is_not(None), literal(WaitsFor.LOCK.value)), else_=null())


def _time_is_over(session: Session, now: datetime) -> int:
    due = _some(session, t.WAITS_TIME & (t.runs.c.not_before <= now), t.runs.c.not_before)
    return _change(session, due, waits_for=_back_in_line())


def _pause_is_over(session: Session, now: datetime) -> int:
    jobs = session.rows(distinct(t.runs.c.job, t.WAITS_PAUSE)).scalars().all()
    if not jobs:
        return 0
    free = sorted(set(jobs) - held_back(session, jobs, now))
    if not free:
        return 0
    over = _some(session, t.WAITS_PAUSE & session.among(t.runs.c.job, free), t.runs.c.seq)
    waits_for = case((t.runs.c.not_before > now, literal(WaitsFor.TIME.value)), else_=_back_in_line())
    return _change(session, over, waits_for=waits_for)


def _rehome(session: Session) -> int:
    used = set(session.rows(distinct(t.runs.c.queue, t.READY)).scalars())
    gone = used - set(session.rows(select(t.queues.c.name)).scalars()) - {"default"}
    if not gone:
        return 0
    return _change(session, _some(session, t.READY & t.runs.c.queue.in_(gone), t.runs.c.seq), queue="default")
