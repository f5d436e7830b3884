"""What a claim has chosen becomes RUNNING."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    FromClause,
    Insert,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from scheduler.core.model import Cause, Run, Status
from scheduler.store import tables as t
from scheduler.store.bulk import update_each
from scheduler.store.pauses import in_force
from scheduler.store.rows import WHOLE_RUN, whole_runs
from scheduler.store.session import Session, listed, unheld

_NOW = bindparam("now", type_=t.runs.c.started_at.type)
_PAUSED = exists().where(t.pauses.c.job == t.runs.c.job, in_force(_NOW)).correlate(t.runs)
_FREE = and_(t.READY, or_(t.runs.c.cause == Cause.MANUAL.value, ~_PAUSED))


@cache
def _taken(kind: str) -> Update:
    greatest = func.max if kind == "sqlite" else func.greatest
    seq = t.runs.c.seq
    chosen = (listed(kind, seq), _FREE) if kind == "sqlite" else (seq.in_(select(unheld(_FREE).cte("unheld").c.seq)),)
    lock_fence = select(t.locks.c.fence).where(t.locks.c.key == t.runs.c.lock).scalar_subquery()
    return (
        update(t.runs)
        .where(*chosen)
        .values(
            status=Status.RUNNING.value,
            node=bindparam("by_node"),
            # the time keeps fences growing after a backup was restored
            fence=greatest(
                t.runs.c.fence + 1,
                func.coalesce(lock_fence, 0) + 1,
                bindparam("milliseconds", type_=t.runs.c.fence.type),
            ),
            attempt=t.runs.c.attempt + 1,
            started_at=func.coalesce(t.runs.c.started_at, _NOW),
            not_before=None,
            reason=None,
            progress=None,
            message=None,
            result=None,
        )
    )


@cache
def _running() -> Select[Any]:
    return select(*WHOLE_RUN).where(listed("sqlite", t.runs.c.seq), t.IS_RUNNING)


def _begun(kind: str, runs: FromClause) -> Insert:
    """Opens the attempts of these runs, which are of the jobs in `jobs_listed`."""
    run, job = runs.c, t.jobs.c
    begun = select(run.id, run.attempt, run.node, run.fence, _NOW, job.fingerprint, literal(0))
    begun = begun.join(t.jobs, job.name == run.job).where(listed(kind, job.name, "jobs_listed"))
    columns = ("run", "number", "node", "fence", "started_at", "fingerprint", "left")
    return insert(t.attempts).from_select(columns, begun)


@cache
def _opened() -> Insert:
    ours = select(t.runs).where(listed("sqlite", t.runs.c.seq), t.IS_RUNNING)
    return _begun("sqlite", ours.subquery())


@cache
def _taken_at_once() -> Select[Any]:
    """The same with the attempts and the locks, in one statement. SQLite has none that changes several tables, and for
    it a subquery in RETURNING knows no index."""
    runs = _taken("postgresql").returning(*WHOLE_RUN).cte("taken")
    locks = t.locks.c
    held = update(t.locks).where(locks.key == runs.c.lock, listed("postgresql", locks.key, "locks_listed"))
    held = held.values(run=runs.c.id, fence=runs.c.fence)
    return select(runs).add_cte(_begun("postgresql", runs).cte("begun"), held.cte("held"))


def take(session: Session, node: str, chosen: Mapping[int, Row[Any]], now: datetime) -> list[Run]:
    """Those of these candidates, by their numbers, that are free at this moment, in their order: RUNNING on that node,
    their attempt begun, their lock theirs."""
    if not chosen:
        return []
    values = {"by_node": node, "milliseconds": int(now.timestamp() * 1000), "now": now}
    asked = {
        "listed": session.listing(chosen),
        "jobs_listed": session.listing({row.job for row in chosen.values()}),
    }
    if session.kind == "postgresql":
        locks = [row.lock for row in chosen.values() if row.lock is not None]
        return _in_order(chosen, session.rows(_taken_at_once(), **asked, locks_listed=locks, **values).all())
    session.write(_taken(session.kind), {"listed": asked["listed"], **values})
    runs = _in_order(chosen, session.rows(_running(), listed=asked["listed"]).all())
    session.write(_opened(), {**asked, "now": now})
    holders = [{"key": run.lock, "run": run.id, "fence": run.fence} for run in runs if run.lock is not None]
    update_each(session, t.locks, ("key",), holders)
    return runs


def _in_order(chosen: Mapping[int, Row[Any]], rows: Iterable[Row[Any]]) -> list[Run]:
    """As they were chosen."""
    place = {seq: index for index, seq in enumerate(chosen)}
    return whole_runs(sorted(rows, key=lambda row: place[row.seq]))
