"""What jobs are kept as, and every change of that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, select

from scheduler.core.model import JobState
from scheduler.core.state import Flip, State, Why
from scheduler.store import tables as t
from scheduler.store.bulk import insert_all, update_each
from scheduler.store.rows import STATE, state_of
from scheduler.store.session import Session

_WAITED_FOR = (t.jobs.c.deadline_at.is_not(None), t.NOT_MISSED)
_PASSED = select(*STATE).where(*_WAITED_FOR, t.jobs.c.deadline_at <= bindparam("at")).order_by(t.jobs.c.deadline_at)
_NEXT = (
    select(t.jobs.c.deadline_at)
    .where(*_WAITED_FOR, t.jobs.c.deadline_at > bindparam("at"))
    .order_by(t.jobs.c.deadline_at)
    .limit(1)
)


def passed(session: Session, at: datetime) -> list[JobState]:
    """Jobs whose deadline was not later than `at` and that are not kept as missed, the earliest deadline first."""
    return [state_of(row) for row in session.rows(_PASSED, at=at)]


def next_deadline(session: Session, after: datetime) -> datetime | None:
    """The earliest deadline later than that of a job that is not kept as missed."""
    found: datetime | None = session.rows(_NEXT, at=after).scalar()
    return found


def flip(session: Session, flips: Sequence[Flip], now: datetime) -> list[Flip]:
    """Stores those whose job is still kept as `old` (and still has the flip's deadline); these, with what the store
    adds to them."""
    if not flips:
        return []
    query = select(t.jobs.c.name, t.jobs.c.state, t.jobs.c.state_since, t.jobs.c.deadline_at)
    query = query.where(session.among(t.jobs.c.name, {one.job for one in flips})).order_by(t.jobs.c.name)
    kept = {row.name: row for row in session.rows(query.with_for_update(key_share=True))}
    rows: list[dict[str, Any]] = []
    last: dict[str, tuple[State, datetime]] = {}
    for one in flips:
        row = kept.get(one.job)
        if row is None or (one.deadline is not None and row.deadline_at != one.deadline):
            continue
        old, since = last.get(one.job) or (State(row.state), row.state_since)
        if old is not one.old:
            continue
        last[one.job] = (one.new, one.at)
        rows.append(
            {
                "job": one.job,
                "at": one.at,
                "seen_at": now,
                "old": str(one.old),
                "new": str(one.new),
                "why": str(one.why),
                "run": one.run,
                "was_since": since,
            }
        )
    if not rows:
        return []
    update_each(
        session,
        t.jobs,
        ("name",),
        [{"name": job, "state": str(state), "state_since": since} for job, (state, since) in last.items()],
    )
    insert_all(session, t.flips, rows)
    # Their rows are held, so these are the newest of their jobs.
    newest = select(t.flips).where(session.among(t.flips.c.job, set(last)), t.flips.c.seen_at == now)
    found = [flip_of(row) for row in session.rows(newest.order_by(t.flips.c.id.desc()).limit(len(rows)))]
    return found[::-1]


def flips_of(session: Session, job: str, limit: int) -> list[Flip]:
    """The newest first."""
    query = select(t.flips).where(t.flips.c.job == job).order_by(t.flips.c.id.desc()).limit(limit)
    return [flip_of(row) for row in session.rows(query)]


def flip_of(row: Row[Any]) -> Flip:
    return Flip(
        row.job,
        State(row.old),
        State(row.new),
        row.at,
        Why(row.why),
        row.run,
        was_since=row.was_since,
        seen_at=row.seen_at,
        id=row.id,
    )


def prune_flips(session: Session, before: datetime, limit: int) -> int:
    """Deletes those seen before that instant, the oldest first; the number, `limit` at most."""
    old = select(t.flips.c.id).where(t.flips.c.seen_at < before).order_by(t.flips.c.seen_at).limit(limit)
    ids = list(session.rows(old).scalars())
    return session.write(delete(t.flips).where(session.among(t.flips.c.id, ids))) if ids else 0
