"""Runs that end before or against their will: cancelled, skipped while they waited, dropped with their job."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, select, update

from scheduler.core.model import FailReason, Status
from scheduler.store import tables as t
from scheduler.store.kept_locks import let_go
from scheduler.store.promote import next_in_line
from scheduler.store.session import Session, chunks

_PENDING = t.runs.c.status == t.PENDING


def request_cancel(session: Session, runs: Collection[str], why: str, now: datetime) -> set[str]:
    """RUNNING: asks its node (a second request changes nothing); PENDING: CANCELED at once. The ids concerned."""
    concerned: set[str] = set()
    for chunk in chunks(sorted(runs)):
        rows = _held(session, and_(session.among(t.runs.c.id, chunk), t.runs.c.status.in_(("PENDING", "RUNNING"))))
        waiting = [row for row in rows if row.status == "PENDING"]
        _finish(session, waiting, now, status=Status.CANCELED.value, cancel=why)
        running = [row.seq for row in rows if row.status == "RUNNING"]
        if running:
            where = (session.among(t.runs.c.seq, running), t.runs.c.cancel.is_(None))
            session.write(update(t.runs).where(*where).values(cancel=why))
        concerned |= {row.id for row in rows}
    return concerned


def skip_waiting(session: Session, runs: Collection[str], reason: str, now: datetime) -> set[str]:
    """PENDING runs that never started → SKIPPED(reason); the ids of those that were."""
    skipped: set[str] = set()
    for chunk in chunks(sorted(runs)):
        rows = _held(session, and_(session.among(t.runs.c.id, chunk), _PENDING, t.runs.c.attempt == 0))
        _finish(session, rows, now, status=Status.SKIPPED.value, reason=reason)
        skipped |= {row.id for row in rows}
    return skipped


def drop_pending(session: Session, job: str, now: datetime) -> tuple[int, int]:
    """For a removed job: its waiting payload runs → FAILED(job_removed), all other waiting runs → CANCELED; the numbers
    of (cancelled, failed) ones."""
    rows = _held(session, and_(t.PENDING_OCCURRENCE, t.runs.c.job == job))
    rows += _held(session, and_(t.PENDING_OTHER, t.runs.c.job == job))
    carrying = [row for row in rows if row.has_payload]
    others = [row for row in rows if not row.has_payload]
    for chunk in chunks(carrying):
        _fail(session, chunk, "its job was removed", now)
    for chunk in chunks(others):
        _finish(session, chunk, now, status=Status.CANCELED.value, cancel="its job was removed")
    return len(others), len(carrying)


def give_up(session: Session, runs: Collection[str], error: str, now: datetime) -> set[str]:
    """PENDING runs with a payload → FAILED(job_removed); the ids of those that were."""
    ended: set[str] = set()
    for chunk in chunks(sorted(runs)):
        rows = _held(session, and_(session.among(t.runs.c.id, chunk), _PENDING, t.runs.c.has_payload))
        _fail(session, rows, error, now)
        ended |= {row.id for row in rows}
    return ended


def discard(session: Session, runs: Collection[str], now: datetime) -> set[str]:
    """Dead letters that nobody needs any more; the ids of those that were."""
    gone: set[str] = set()
    for chunk in chunks(sorted(runs)):
        rows = _held(session, and_(t.DEAD_LETTER, session.among(t.runs.c.id, chunk)))
        seqs = [row.seq for row in rows]
        session.write(update(t.runs).where(session.among(t.runs.c.seq, seqs)).values(discarded_at=now))
        let_go(session, [row.id for row in rows])
        gone |= {row.id for row in rows}
    return gone


def _held(session: Session, where: Any) -> list[Row[Any]]:
    """These runs, locked in the order of their numbers."""
    columns = (t.runs.c.seq, t.runs.c.id, t.runs.c.status, t.runs.c.lock, t.runs.c.has_payload)
    return list(session.rows(select(*columns).where(where).order_by(t.runs.c.seq).with_for_update()))


def _fail(session: Session, rows: Sequence[Row[Any]], error: str, now: datetime) -> None:
    _finish(session, rows, now, status=Status.FAILED.value, reason=FailReason.JOB_REMOVED.value, error=error)


def _finish(session: Session, rows: Sequence[Row[Any]], now: datetime, **values: Any) -> None:
    if not rows:
        return
    seqs = [row.seq for row in rows]
    values = {**values, "finished_at": now, "waits_for": None}
    session.write(update(t.runs).where(session.among(t.runs.c.seq, seqs)).values(values))
    # it may have been the next in line
    next_in_line(session, {row.lock for row in rows if row.lock is not None})
