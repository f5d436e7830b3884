"""Webhooks that came and that no list of a scan has: which, in a time that was listed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Column, ColumnElement, exists, func, not_, select

from scheduler.core.compensator import Window
from scheduler.core.event import MADE_UP
from scheduler.store import tables as t
from scheduler.store.session import Session

STRETCH = 100_000
"""Events that one statement compares with what was listed, unless more occurred in one microsecond."""

_E = t.events.c


def unlisted(
    session: Session, source: str, occurred: Window, came: Window, job: str, limit: int
) -> tuple[int, list[str]]:
    """How many, and the ids of up to `limit`."""
    seen = exists().where(t.listings.c.event == _E.seq, t.listings.c.job == job)
    count, ids = 0, list[str]()
    for column, where in _parts(session, source, occurred, came):
        lacking = (*where, _E.vouched_by != MADE_UP, not_(seen))
        here = session.rows(select(func.count()).select_from(t.events).where(*lacking)).scalar_one()
        if here and len(ids) < limit:
            query = select(_E.id).where(*lacking).order_by(column, _E.seq).limit(limit - len(ids))
            ids += session.rows(query).scalars()
        count += here
    return count, ids


_Part = tuple[Column[datetime], tuple[ColumnElement[bool], ...]]


def _parts(session: Session, source: str, occurred: Window, came: Window) -> Iterator[_Part]:
    yield from _stretches(session, _E.occurred_at, (_E.source == source, t.CAME_BY_WEBHOOK), occurred)
    yield from _stretches(session, _E.received_at, (_E.source == source, t.CAME_BY_WEBHOOK, t.IS_UNDATED), came)


def _stretches(
    session: Session, column: Column[datetime], which: tuple[ColumnElement[bool], ...], within: Window
) -> Iterator[_Part]:
    """`which` of `within`, in parts that a statement has the time to look at, oldest first."""
    start = within.start
    while True:
        rest = (*which, column <= within.end, column >= start)
        edge: datetime | None = session.rows(
            select(column).where(*rest).order_by(column).offset(STRETCH).limit(1)
        ).scalar()
        if edge is None or edge == start:
            yield column, rest
            return
        yield column, (*rest, column < edge)
        start = edge
