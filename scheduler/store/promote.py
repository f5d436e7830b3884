"""Runs that wait compete again.

Settling and cancelling wake the next in line at once, and so does whatever lets a run compete again. The sweep looks at
all locks that are waited for, a part at a time, so that a wake-up that was missed (two transactions that did not see
each other) costs a moment, not a run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.sql.elements import KeyedColumnElement

from scheduler.core.model import WaitsFor
from scheduler.core.requests import Promoted
from scheduler.store import tables as t
from scheduler.store.pauses import held_back
from scheduler.store.session import Session, chunks

SWEEP = 2_000
"""Runs of one kind that one sweep moves at most."""
LOCKS = 1_000
"""Locks that one statement looks at, and one sweep."""


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

_BESIDE = t.runs.alias("beside")
IS_RUNNING_BESIDE = and_(
    t.runs.c.lock.is_not(None),
    exists()
    .where(
        _BESIDE.c.job == t.runs.c.job,
        _BESIDE.c.status == t.RUNNING,
        _BESIDE.c.lock.is_distinct_from(t.runs.c.lock),
        or_(t.runs.c.rank.is_(None), and_(_BESIDE.c.rank.is_(None), _BESIDE.c.lock.is_not(None))),
    )
    .correlate(t.runs),
)
"""In a query on runs: the run needs a lock, and another run of its job is RUNNING under another one, or under none. An
attempt keeps the lock with which it started, and its job was given another one since: the next run waits for both. Runs
of different subjects are meant to run side by side."""
_MAY_HAVE_LOCK = and_(t.WAITS_LOCK, ~IS_RUNNING_BESIDE)


@cache
def distinct(column: KeyedColumnElement[str], where: ColumnElement[bool]) -> Select[tuple[str]]:
    """The different values of an indexed column, one seek each however many rows share a value."""
    first = select(func.min(column).label("value")).where(where).cte(f"each_{column.name}", recursive=True)
    following = select(func.min(column)).where(where, column > first.c.value).scalar_subquery().correlate(first)
    each = first.union_all(select(following).where(first.c.value.is_not(None)))
    return select(each.c.value).where(each.c.value.is_not(None))


_AFTER = bindparam("after_lock", type_=Text())
_TIME_COMES = exists().where(t.WAITS_TIME, t.runs.c.not_before <= bindparam("at", type_=t.runs.c.not_before.type))
_WAITS = select(
    _TIME_COMES.label("time"), exists().where(t.WAITS_PAUSE).label("pause"), exists().where(t.WAITS_LOCK).label("lock")
)


def promote(session: Session, now: datetime, after: str | None = "") -> Promoted:
    """Lets runs whose time, lock or pause is over compete again, and gives runs whose queue is gone to `default`.
    `after` None: no sweep over the locks, nor over the queues."""
    waits = session.connection.execute(_WAITS, {"at": now}).one()
    moved: list[int] = []
    if waits.time:
        moved += _time_is_over(session, now)
    if waits.pause:
        moved += _pause_is_over(session, now)
    count = len(moved) + (0 if after is None else _rehome(session))
    keys = set[str]()
    for some in chunks(moved, LOCKS):
        mine = select(t.runs.c.lock).where(session.among(t.runs.c.seq, some), t.runs.c.lock.is_not(None))
        keys.update(session.rows(mine).scalars())
    swept: list[str] = []
    if after is not None and waits.lock:
        swept += session.connection.execute(_locks_after(), {"after_lock": after}).scalars()
    count += next_in_line(session, sorted(keys | set(swept)))
    return Promoted(count, swept[-1] if len(swept) == LOCKS else "")


@cache
def _locks_after() -> Select[Any]:
    """The next locks, in their order, that runs wait for."""
    first = select(func.min(t.runs.c.lock).label("value")).where(t.WAITS_LOCK, t.runs.c.lock > _AFTER)
    each = first.cte("locks_after", recursive=True)
    following = select(func.min(t.runs.c.lock)).where(t.WAITS_LOCK, t.runs.c.lock > each.c.value)
    each = each.union_all(select(following.scalar_subquery().correlate(each)).where(each.c.value.is_not(None)))
    return select(each.c.value).where(each.c.value.is_not(None)).limit(LOCKS)


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
        return session.unheld(_MAY_HAVE_LOCK, seqs)
    query = select(t.runs.c.seq).where(session.among(t.runs.c.seq, seqs), _MAY_HAVE_LOCK)
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


def _time_is_over(session: Session, now: datetime) -> Sequence[int]:
    due = _some(session, t.WAITS_TIME & (t.runs.c.not_before <= now), t.runs.c.not_before)
    _change(session, due, waits_for=_back_in_line())
    return due


def _pause_is_over(session: Session, now: datetime) -> Sequence[int]:
    jobs = session.rows(distinct(t.runs.c.job, t.WAITS_PAUSE)).scalars().all()
    free = sorted(set(jobs) - held_back(session, jobs, now)) if jobs else []
    if not free:
        return []
    over = _some(session, t.WAITS_PAUSE & session.among(t.runs.c.job, free), t.runs.c.seq)
    waits_for = case((t.runs.c.not_before > now, literal(WaitsFor.TIME.value)), else_=_back_in_line())
    _change(session, over, waits_for=waits_for)
    return over


def _rehome(session: Session) -> int:
    used = set(session.rows(distinct(t.runs.c.queue, t.READY)).scalars())
    gone = used - set(session.rows(select(t.queues.c.name)).scalars()) - {"default"}
    if not gone:
        return 0
    return _change(session, _some(session, t.READY & t.runs.c.queue.in_(gone), t.runs.c.seq), queue="default")
