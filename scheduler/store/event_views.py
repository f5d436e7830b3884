"""Events as people are shown them."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlalchemy import ColumnElement, exists, func, or_, select

from scheduler.core.errors import InvalidInput
from scheduler.core.event_queries import EventDetail, EventFilter, EventPage, EventRun
from scheduler.core.model import Status
from scheduler.store import tables as t
from scheduler.store.event_rows import BARE, bare
from scheduler.store.events import SqlEvents
from scheduler.store.session import Session

_CURSOR = re.compile(r"\d{1,18}", re.ASCII)
_E = t.events.c


def events(session: Session, which: EventFilter, limit: int, cursor: str | None) -> EventPage:
    """One page. Nothing is left out or shown twice by paging, also while new events come."""
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise InvalidInput(f"cursor {cursor!r} is not one of ours", hint="take `cursor` from the page before, as is")
    where = _where(session, which)
    if cursor is not None:
        where.append(_E.seq < int(cursor))
    rows = session.rows(select(*BARE).where(*where).order_by(_E.seq.desc()).limit(limit + 1)).all()
    found = [bare(row) for row in rows[:limit]]
    runs = _runs(session, [one.seq for one in found])
    return EventPage(tuple(found), runs, str(found[-1].seq) if len(rows) > limit else None)


def event(session: Session, source: str, event: str) -> EventDetail | None:
    found = SqlEvents(session).get(source, event)
    return None if found is None else EventDetail(found, _runs(session, [found.seq]).get(found.seq, ()))


def held(session: Session) -> dict[str, int]:
    query = select(_E.source, func.count()).where(t.IS_HELD).group_by(_E.source)
    return dict(session.rows(query).all())


def sources_of(session: Session, event: str, among: Collection[str]) -> list[str]:
    query = select(_E.source).where(session.among(_E.source, among), _E.id == event)
    return sorted(session.rows(query).scalars())


def _where(session: Session, which: EventFilter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if which.source:
        where.append(_E.source == which.source)
    if which.types:
        where.append(or_(*(_of_type(session, glob) for glob in which.types)))
    if which.subject:
        where.append(_E.subject == which.subject)
    if which.via is not None:
        where.append(_E.via == which.via.value)
    if which.since is not None:
        where.append(_E.received_at >= which.since)
    if which.until is not None:
        where.append(_E.received_at < which.until)
    if which.missed:
        where.append(t.IS_MISSED)
    if which.unhandled:
        where.append(_unhandled())
    return where


def _unhandled() -> ColumnElement[bool]:
    one, other = t.runs.alias(), t.runs.alias()
    done = exists().where(other.c.event == _E.seq, other.c.job == one.c.job, other.c.status == Status.COMPLETED.value)
    return or_(t.IS_HELD, exists().where(one.c.event == _E.seq, ~done))


def _of_type(session: Session, glob: str) -> ColumnElement[bool]:
    """In its case, which LIKE on SQLite does not mind."""
    if session.kind == "sqlite":
        return _E.type.op("GLOB")(re.sub(r"([?\[])", r"[\1]", glob))
    return _E.type.like(re.sub(r"([\\%_])", r"\\\1", glob).replace("*", "%"), escape="\\")


def _runs(session: Session, seqs: Collection[int]) -> dict[int, tuple[EventRun, ...]]:
    if not seqs:
        return {}
    r = t.runs.c
    query = select(r.event, r.id, r.job, r.status, r.cause, r.created_at)
    rows = session.rows(query.where(r.event.is_not(None), session.among(r.event, seqs)).order_by(r.seq))
    found: dict[int, tuple[EventRun, ...]] = {}
    for seq, run, job, status, cause, created_at in rows:
        found[seq] = (*found.get(seq, ()), EventRun(run, job, Status(status), cause, created_at))
    return found
