"""What happened, a page at a time: runs and ranges of skips, newest first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlalchemy import ColumnElement, select

from scheduler.core.canary import CANARY
from scheduler.core.errors import InvalidInput
from scheduler.core.model import Cause, Status
from scheduler.core.queries import CURSOR, Entry, Page, RunFilter
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.rows import RUN, WHOLE_RUN, runs_of, skip_of, whole_runs
from scheduler.store.session import Session

_CURSOR = re.compile(CURSOR, re.ASCII)
_START = 1 << 62


@value_object
class _Place:
    """Everything before it has been shown: runs from `seq` on, skips from `skip` on."""

    seq: int = _START
    skip: int = _START

    @classmethod
    def of(cls, cursor: str | None) -> _Place:
        if cursor is None:
            return cls()
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise InvalidInput(
                f"cursor {cursor!r} is not one of ours", hint="take `cursor` from the page before, as is"
            )
        return cls(int(found[1]) or _START, int(found[2]) or _START)

    def __str__(self) -> str:
        return f"r{0 if self.seq == _START else self.seq}s{0 if self.skip == _START else self.skip}"


def history(session: Session, which: RunFilter, limit: int, cursor: str | None) -> Page:
    """One page of runs and skips in the order in which they were recorded, the last first: runs among themselves, skips
    among themselves, and both merged by when a run was made and a range of skips began. That does not change as a
    range grows, so pages, however long, are pieces of one list: nothing is left out or shown twice by paging, also
    while new entries come."""
    place = _Place.of(cursor)
    runs = _runs(session, which, limit + 1, place.seq)
    skips = _skips(session, which, limit + 1, place.skip)
    entries: list[Entry] = []
    while (runs or skips) and len(entries) < limit:
        if runs and (not skips or runs[0][1].at >= skips[0][1].at):
            number, entry = runs.pop(0)
            place = _Place(number, place.skip)
        else:
            number, entry = skips.pop(0)
            place = _Place(place.seq, number)
        entries.append(entry)
    return Page(tuple(entries), str(place) if runs or skips else None)


def _runs(session: Session, which: RunFilter, limit: int, before: int) -> list[tuple[int, Entry]]:
    where: list[ColumnElement[bool]] = [t.runs.c.seq < before]
    if which.jobs:
        where.append(t.runs.c.job.in_(which.jobs))
    else:
        where.append(t.runs.c.job != CANARY)
    if which.statuses:
        where.append(_with_status(which.statuses))
    if which.causes:
        where.append(t.runs.c.cause.in_(which.causes))
    if which.since is not None:
        where.append(t.runs.c.created_at >= which.since)
    if which.until is not None:
        where.append(t.runs.c.created_at < which.until)
    query = select(*RUN).where(*where).order_by(t.runs.c.seq.desc()).limit(limit)
    return [(run.seq, Entry(run.created_at, run=run)) for run in runs_of(session.rows(query))]


def _with_status(statuses: Sequence[Status]) -> ColumnElement[bool]:
    """Written so that the partial indexes serve the few among the many."""
    match tuple(set(statuses)):
        case (Status.FAILED,):
            return t.runs.c.status == t.FAILED
        case (Status.RUNNING,):
            return t.IS_RUNNING
        case (Status.PENDING,):
            return t.runs.c.seq.in_(select(t.runs.c.seq).where(t.IS_PENDING))
    return t.runs.c.status.in_([status.value for status in statuses])


def _skips(session: Session, which: RunFilter, limit: int, before: int) -> list[tuple[int, Entry]]:
    if (
        not which.skips
        or (which.statuses and Status.SKIPPED not in which.statuses)
        or (which.causes and Cause.SCHEDULE not in which.causes)
    ):
        return []
    where: list[ColumnElement[bool]] = [t.skips.c.id < before]
    if which.jobs:
        where.append(t.skips.c.job.in_(which.jobs))
    else:
        where.append(t.skips.c.job != CANARY)
    if which.since is not None:
        where.append(t.skips.c.last >= which.since)
    if which.until is not None:
        where.append(t.skips.c.first < which.until)
    query = select(t.skips).where(*where).order_by(t.skips.c.id.desc()).limit(limit)
    return [(row.id, Entry(row.first, skip=skip_of(row))) for row in session.rows(query)]


def dead_letters(session: Session, job: str | None, limit: int, cursor: str | None) -> Page:
    place = _Place.of(cursor)
    # found first, ordered then: most failures carry nothing
    dead = select(t.runs.c.seq).where(t.DEAD_LETTER, t.runs.c.seq < place.seq)
    if job is not None:
        dead = dead.where(t.runs.c.job == job)
    query = select(*WHOLE_RUN).where(t.runs.c.seq.in_(dead)).order_by(t.runs.c.seq.desc()).limit(limit + 1)
    rows = session.rows(query).all()
    shown = whole_runs(rows[:limit])
    more = str(_Place(shown[-1].seq)) if len(rows) > limit and shown else None
    return Page(tuple(Entry(run.created_at, run=run) for run in shown), more)


def find_runs(session: Session, text: str, limit: int) -> list[str]:
    """Ids that are `text`, or end with it: these are looked for among the newest 200,000 runs only."""
    exact = session.rows(select(t.runs.c.id).where(t.runs.c.id == text)).scalar()
    if exact is not None:
        return [exact]
    if len(text) < 4 or re.fullmatch(r"[0-9a-f-]+", text) is None:
        return []
    newest = session.rows(select(t.runs.c.seq).order_by(t.runs.c.seq.desc()).limit(1)).scalar() or 0
    query = (
        select(t.runs.c.id)
        .where(t.runs.c.seq > newest - 200_000, t.runs.c.id.endswith(text))
        .order_by(t.runs.c.seq.desc())
        .limit(limit)
    )
    return list(session.rows(query).scalars())
