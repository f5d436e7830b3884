"""Locks that dead letters keep: in an order of their own, what gave up may hold up what comes behind it."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select, update

from scheduler.store import tables as t
from scheduler.store.promote import next_in_line
from scheduler.store.session import Session


def let_go(session: Session, runs: Collection[str]) -> None:
    """Frees the locks that these finished runs kept, and wakes the next in line."""
    ordered = (session.among(t.runs.c.id, runs), t.runs.c.lock.is_not(None), t.runs.c.rank.is_not(None))
    keys = set(session.rows(select(t.runs.c.lock).where(*ordered)).scalars())
    if not keys:
        return
    table = t.locks.c
    kept = (session.among(table.key, keys), session.among(table.run, runs))
    mine = session.rows(select(table.key).where(*kept).order_by(table.key).with_for_update()).scalars().all()
    if mine:
        session.write(update(t.locks).where(session.among(table.key, mine)).values(run=None))
        next_in_line(session, mine)


def kept_by(session: Session, job: str) -> list[str]:
    """The dead letters of a job that keep their lock."""
    dead = (t.DEAD_LETTER, t.runs.c.job == job, t.runs.c.rank.is_not(None))
    query = select(t.runs.c.id).join(t.locks, t.locks.c.key == t.runs.c.lock).where(*dead, t.locks.c.run == t.runs.c.id)
    return list(session.rows(query).scalars())
