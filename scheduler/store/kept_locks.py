"""Dead letters in lines that have an order of their own: what gave up may hold up what comes behind it, and is told to
what comes after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import func, select, update

from scheduler.core.model import Run
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
    mine = (
        session.rows(select(table.key).where(*kept).order_by(table.key).with_for_update(key_share=True)).scalars().all()
    )
    if mine:
        session.write(update(t.locks).where(session.among(table.key, mine)).values(run=None))
        next_in_line(session, mine)


def kept_by(session: Session, job: str) -> list[str]:
    """The dead letters of a job that keep their lock."""
    dead = (t.DEAD_LETTER, t.runs.c.job == job, t.runs.c.rank.is_not(None))
    query = select(t.runs.c.id).join(t.locks, t.locks.c.key == t.runs.c.lock).where(*dead, t.locks.c.run == t.runs.c.id)
    return list(session.rows(query).scalars())


def held_up(session: Session, runs: Collection[str] | None) -> dict[tuple[str, str], int]:
    """How many runs wait behind these dead letters that keep their lock (None: behind all), by (job, run)."""
    dead = select(t.runs.c.id, t.runs.c.job, t.runs.c.lock).where(t.DEAD_LETTER, t.runs.c.rank.is_not(None))
    if runs is not None:
        dead = dead.where(session.among(t.runs.c.id, runs))
    letters = dead.subquery()
    query = (
        select(letters.c.job, letters.c.id, func.count())
        .join(t.locks, t.locks.c.key == letters.c.lock)
        .join(t.runs, t.runs.c.lock == letters.c.lock)
        .where(t.locks.c.run == letters.c.id, t.IS_ORDERED)
        .group_by(letters.c.job, letters.c.id)
    )
    return {(job, run): count for job, run, count in session.rows(query)}


def dead_before(session: Session, runs: Sequence[Run], most: int) -> dict[str, list[str]]:
    """For each of these runs that has a rank: the ids of the events whose runs are dead letters in the same line before
    it, the oldest first, of each line the newest `most`."""
    ordered = [run for run in runs if run.rank is not None and run.lock is not None]
    if not ordered:
        return {}
    query = (
        select(t.runs.c.lock, t.runs.c.rank, t.runs.c.key, t.events.c.id)
        .join(t.events, t.events.c.seq == t.runs.c.event)
        .where(
            t.DEAD_LETTER,
            session.among(t.runs.c.job, {run.job for run in ordered}),
            session.among(t.runs.c.lock, {run.lock for run in ordered}),
        )
        .order_by(t.runs.c.rank, t.runs.c.key)
    )
    dead: dict[str, list[tuple[tuple[int, str], str]]] = {}
    for lock, rank, key, event in session.rows(query):
        dead.setdefault(lock, []).append(((rank, key), event))
    found = {}
    for run in ordered:
        before = [event for place, event in dead.get(run.lock or "", ()) if place < (run.rank or 0, run.key)]
        if before:
            found[run.id] = before[-most:]
    return found
