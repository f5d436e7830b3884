"""Requests that were refused, as they are kept and let go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, delete, func, or_, select, true, update

from scheduler.core.event import Reject
from scheduler.core.event_queries import Rejects
from scheduler.store import tables as t
from scheduler.store.bulk import insert_all
from scheduler.store.event_rows import reject_of, reject_row
from scheduler.store.session import Session

_R = t.rejects.c
_WAITS = _R.accepted_at.is_(None)


def add(session: Session, rejects: Sequence[Reject], keep: int, size: int) -> None:
    insert_all(session, t.rejects, [reject_row(one) for one in rejects])
    for source, reason in sorted({(one.source, one.reason.value) for one in rejects}):
        _let_go(session, source, reason, keep, size)


def _let_go(session: Session, source: str, reason: str, keep: int, size: int) -> None:
    mine = and_(_R.source == source, _R.reason == reason)
    newest_first = _R.seq.desc()
    older = (
        select(
            _R.seq,
            func.row_number().over(order_by=newest_first).label("place"),
            func.sum(func.length(_R.body)).over(order_by=newest_first).label("size"),
        )
        .where(mine)
        .subquery()
    )
    too_many = or_(older.c.place > keep, and_(older.c.place > 1, older.c.size > size))
    last = session.rows(select(func.max(older.c.seq)).where(too_many)).scalar()
    if last is None:
        return
    gone = session.connection.execute(
        delete(t.rejects).where(mine, _R.seq <= last).returning(_R.dropped, _R.accepted_at)
    ).all()
    dropped = sum(row.dropped + (row.accepted_at is None) for row in gone)
    oldest = select(func.min(_R.seq)).where(mine).scalar_subquery()
    session.write(update(t.rejects).where(_R.seq == oldest).values(dropped=_R.dropped + dropped))


def oldest(session: Session, source: str, limit: int, after: int, since: datetime | None) -> list[Reject]:
    query = select(t.rejects).where(_R.source == source, _R.seq > after, _WAITS).order_by(_R.seq).limit(limit)
    if since is not None:
        query = query.where(_R.at >= since)
    return [reject_of(row) for row in session.rows(query)]


def prune(session: Session, source: str, before: datetime, limit: int) -> int:
    """Deletes those that came before, at most `limit`; the number."""
    old = select(_R.seq).where(_R.source == source, _R.at < before).order_by(_R.at).limit(limit)
    seqs = session.rows(old).scalars().all()
    return session.write(delete(t.rejects).where(session.among(_R.seq, seqs))) if seqs else 0


def newest(session: Session, source: str, limit: int) -> Rejects:
    of = _R.source == source if source else true()
    rows = session.rows(select(t.rejects).where(of, _WAITS).order_by(_R.seq.desc()).limit(limit))
    found = tuple(reject_of(row) for row in rows)
    kept = session.rows(select(func.count()).select_from(t.rejects).where(of, _WAITS)).scalar_one()
    lost = session.rows(select(func.sum(_R.dropped), func.max(_R.at)).where(of, _R.dropped > 0)).one()
    return Rejects(found, kept, int(lost[0] or 0), lost[1])
