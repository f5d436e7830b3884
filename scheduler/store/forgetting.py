"""What the inbox forgets: old events with their ids, and the refused requests of the same time."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, exists, not_, or_, select

from scheduler.store import rejects
from scheduler.store import tables as t
from scheduler.store.session import Session, chunks

_E = t.events.c


def prune(session: Session, source: str, keep: timedelta, now: datetime, limit: int) -> int:
    """The number of events and refused requests that were deleted, `limit` at most."""
    edge = now - keep
    # first: once its id is forgotten, what is verified again would be taken for a new event
    removed = rejects.prune(session, source, edge, limit)
    needed = exists().where(t.runs.c.event == _E.seq, or_(t.IS_PENDING, t.IS_RUNNING, t.DEAD_LETTER))
    query = (
        select(_E.seq, _E.received_at)
        .where(_E.source == source, _E.received_at < edge, not_(t.IS_HELD), not_(needed))
        .order_by(_E.received_at)
        .limit(limit - removed)
    )
    old = session.rows(query).all() if removed < limit else []
    for rows in chunks(old):
        removed += session.write(delete(t.events).where(session.among(_E.seq, [row.seq for row in rows])))
    if old:
        _note(session, source, old[-1].received_at)
    return removed


def _note(session: Session, source: str, until: datetime) -> None:
    statement = session.insert(t.forgotten)
    later = t.forgotten.c.until < statement.excluded.until
    noted = statement.on_conflict_do_update(
        index_elements=["source"], set_={"until": statement.excluded.until}, where=later
    )
    session.write(noted, {"source": source, "until": until})


def forgotten(session: Session, source: str) -> datetime | None:
    """Up to when events came of which some ids are forgotten; None: all that ever came are known."""
    found: datetime | None = session.rows(select(t.forgotten.c.until).where(t.forgotten.c.source == source)).scalar()
    return found
