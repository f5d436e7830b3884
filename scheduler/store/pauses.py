"""Intervals in which nothing of a job is claimed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, delete, exists, or_, select, update

from scheduler.core.model import Pause
from scheduler.store import tables as t
from scheduler.store.rows import pause_of
from scheduler.store.session import Session, listed


def in_force(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    return and_(t.pauses.c.start <= now, or_(t.pauses.c.until.is_(None), t.pauses.c.until > now))


def pauses_of(session: Session, jobs: Collection[str] | None, since: datetime) -> list[Pause]:
    """Pauses that end after `since`, by start."""
    asked = {} if jobs is None else {"listed": session.listing(jobs)}
    query = _pauses(session.kind, narrowed=jobs is not None)
    return [pause_of(row) for row in session.rows(query, since=since, **asked).all()]


@cache
def _pauses(kind: str, *, narrowed: bool) -> Select[Any]:
    pause = t.pauses.c
    query = select(t.pauses).where(or_(pause.until.is_(None), pause.until > bindparam("since")))
    if narrowed:
        query = query.where(listed(kind, pause.job))
    return query.order_by(pause.start, pause.id)


def closed_jobs(session: Session, jobs: Collection[str]) -> set[str]:
    """Those of `jobs` that are disabled, removed or unknown."""
    return set(jobs) - set(session.rows(_open(session.kind), listed=session.listing(jobs)).scalars())


@cache
def _open(kind: str) -> Select[Any]:
    return select(t.jobs.c.name).where(listed(kind, t.jobs.c.name), t.jobs.c.enabled, t.jobs.c.removed_at.is_(None))


def held_back(session: Session, jobs: Collection[str], now: datetime) -> set[str]:
    """Those of `jobs` of which only manual runs are claimed: closed ones, and those that are paused now."""
    free = session.rows(free_jobs(session.kind), listed=session.listing(jobs), now=now)
    return set(jobs) - set(free.scalars().all())


@cache
def free_jobs(kind: str) -> Select[Any]:
    """The others, of those `listed`, `now`."""
    now = bindparam("now", type_=t.pauses.c.start.type)
    paused = exists().where(t.pauses.c.job == t.jobs.c.name, in_force(now))
    return _open(kind).where(~paused)


def paused_jobs(session: Session, jobs: Collection[str], now: datetime) -> set[str]:
    """Those of `jobs` that are paused now."""
    return set(session.rows(_paused(session.kind), listed=session.listing(jobs), now=now).scalars())


@cache
def _paused(kind: str) -> Select[Any]:
    now = bindparam("now", type_=t.pauses.c.start.type)
    return select(t.pauses.c.job).where(listed(kind, t.pauses.c.job), in_force(now))


def put_pauses(session: Session, pauses: Sequence[Pause]) -> None:
    # claims in progress end first: what they saw is still true
    session.lock_jobs((pause.job for pause in pauses), change=True)
    rows = [
        {"job": one.job, "start": one.start, "until": one.until, "reason": one.reason, "author": one.author}
        for one in pauses
    ]
    session.write(t.pauses.insert(), rows)


def resume(session: Session, jobs: Collection[str], now: datetime) -> set[str]:
    """Ends the pauses in force and drops those to come; the jobs that had one."""
    session.lock_jobs(jobs, change=True)
    mine = session.among(t.pauses.c.job, jobs)
    later = and_(mine, t.pauses.c.start > now)
    current = and_(mine, in_force(now))
    had = set(session.rows(select(t.pauses.c.job).where(or_(later, current))).scalars())
    session.write(delete(t.pauses).where(later))
    session.write(update(t.pauses).where(current).values(until=now))
    return had
