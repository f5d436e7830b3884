"""Old history goes, a summary per job and day stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Column, Row, Select, and_, delete, exists, func, not_, or_, select, update

from scheduler.core.model import Status
from scheduler.store import tables as t
from scheduler.store.gauges import seconds_of
from scheduler.store.session import Session

OUTSIDE = timedelta(hours=48)
"""Runs whose key came from outside are kept at least so long: their sender may repeat the request."""
IDLE = timedelta(days=1)
"""The lock of a subject stays so long after its last holder. Made anew its fence begins with the time, which is then
greater for sure."""
_TICK = timedelta(microseconds=1)


@dataclass(slots=True)
class _Day:
    statuses: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def prune(session: Session, job: str, keep: timedelta | int, keep_output: timedelta, now: datetime, limit: int) -> int:
    """Deletes old finished runs, skips and outputs of one job into day summaries and moves `pruned_before`; the number
    of rows, `limit` at most. Never: unfinished runs, dead letters, the last success and failure, runs with a key from
    outside (`api:`, `event:`) before 48 hours are over."""
    session.lock_jobs([job])
    edge = now - keep if isinstance(keep, timedelta) else _edge_of_count(session, job, keep)
    removed = 0
    if edge is not None:
        runs = session.rows(_old_runs(session, job, edge, now).limit(limit)).all()
        skips = session.rows(_old_skips(job, edge).limit(limit - len(runs))).all() if len(runs) < limit else []
        _summarize(session, job, runs, skips)
        _move_edge(session, job, runs, skips)
        _delete_runs(session, runs)
        _delete_locks(session, {row.lock for row in runs if row.rank is not None}, now)
        if skips:
            session.write(delete(t.skips).where(t.skips.c.id.in_([row.id for row in skips])))
        removed = len(runs) + len(skips)
    if removed < limit:
        removed += _old_outputs(session, job, now - keep_output, limit - removed)
    return removed


def prunable(session: Session, rules: Mapping[str, tuple[timedelta | int, timedelta]], now: datetime) -> list[str]:
    """Those of these jobs of which `prune` may find something to delete, by name: almost always none, in few
    statements. `rules`: its `keep` and `keep_output`, by job."""
    runs, skips, outputs = (_oldest(column) for column in (t.runs.c.finished_at, t.skips.c.last, t.outputs.c.at))
    query = select(t.jobs.c.name, runs, skips, outputs).where(session.among(t.jobs.c.name, rules))
    oldest = session.rows(query).all()
    edges = _edges(session, {row[0]: keep for row in oldest if isinstance(keep := rules[row[0]][0], int)})
    found = []
    for name, run, skip, output in oldest:
        keep, keep_output = rules[name]
        edge = now - keep if isinstance(keep, timedelta) else edges[name]
        ends = [end for end in (run, skip) if end is not None and edge is not None and end < edge]
        if ends or (output is not None and output < now - keep_output):
            found.append(name)
    return sorted(found)


def _edges(session: Session, keeps: Mapping[str, int]) -> dict[str, datetime | None]:
    """_edge_of_count of many jobs: a statement for each number."""
    found: dict[str, datetime | None] = {}
    for keep in set(keeps.values()):
        names = [name for name, number in keeps.items() if number == keep]
        edge = _ends().where(t.runs.c.job == t.jobs.c.name).offset(max(keep, 1) - 1).limit(1).correlate(t.jobs)
        query = select(t.jobs.c.name, edge.scalar_subquery()).where(session.among(t.jobs.c.name, names))
        found.update(session.rows(query).all())
    return found


def _oldest(instant: Column[datetime]) -> Any:
    job = instant.table.c.job
    return (
        select(func.min(instant)).where(job == t.jobs.c.name, instant.is_not(None)).correlate(t.jobs).scalar_subquery()
    )


def _ends() -> Select[tuple[datetime]]:
    """The latest first."""
    query = select(t.runs.c.finished_at).where(t.runs.c.finished_at.is_not(None))
    return query.order_by(t.runs.c.finished_at.desc())


def _edge_of_count(session: Session, job: str, keep: int) -> datetime | None:
    """When the `keep`-th newest finished run ended; None if there are fewer."""
    query = _ends().where(t.runs.c.job == job).offset(max(keep, 1) - 1).limit(1)
    edge: datetime | None = session.rows(query).scalar()
    return edge


def _old_runs(session: Session, job: str, edge: datetime, now: datetime) -> Any:
    mine = t.runs.c.job == job

    last = select(t.jobs.c.last_success_seq, t.jobs.c.last_failure_seq).where(t.jobs.c.name == job)
    kept = [seq for row in session.rows(last) for seq in row if seq is not None]
    outside = or_(t.runs.c.key.startswith("api:"), t.runs.c.key.startswith("event:"))
    columns = (
        t.runs.c.seq,
        t.runs.c.id,
        t.runs.c.status,
        t.runs.c.reason,
        t.runs.c.scheduled_for,
        t.runs.c.created_at,
        t.runs.c.started_at,
        t.runs.c.finished_at,
        t.runs.c.took,
        t.runs.c.lock,
        t.runs.c.rank,
    )
    return (
        select(*columns)
        .where(
            mine,
            t.runs.c.finished_at < edge,
            t.runs.c.seq.not_in(kept),
            not_(t.DEAD_LETTER),
            not_(and_(outside, t.runs.c.created_at > now - OUTSIDE)),
        )
        .order_by(t.runs.c.finished_at)
    )


def _old_skips(job: str, edge: datetime) -> Any:
    # the range that may still grow stays
    growing = select(t.jobs.c.last_skip_id).where(t.jobs.c.name == job, t.jobs.c.last_skip_id.is_not(None))
    return (
        select(t.skips)
        .where(t.skips.c.job == job, t.skips.c.last < edge, t.skips.c.id.not_in(growing))
        .order_by(t.skips.c.last)
    )


def _summarize(session: Session, job: str, runs: Sequence[Row[Any]], skips: Sequence[Row[Any]]) -> None:
    days: dict[date, _Day] = {}
    for row in runs:
        day = days.setdefault((row.scheduled_for or row.created_at).date(), _Day())
        if row.status == Status.SKIPPED.value:
            day.skipped[row.reason] += 1
            continue
        day.statuses[row.status] += 1
        if row.started_at is not None:
            day.seconds += seconds_of(row)
    for row in skips:
        days.setdefault(row.last.date(), _Day()).skipped[row.reason] += row._mapping["count"]
    if not days:
        return
    query = select(t.summaries).where(t.summaries.c.job == job, t.summaries.c.day.in_(days))
    for row in session.rows(query):
        day = days[row.day]
        day.skipped.update(row.skipped)
        day.seconds += row.seconds
        for status in (Status.COMPLETED, Status.FAILED, Status.CANCELED):
            day.statuses[status.value] += row._mapping[status.value.lower()]
    statement = session.insert(t.summaries)
    changed = ("completed", "failed", "canceled", "skipped", "seconds")
    session.write(
        statement.on_conflict_do_update(
            index_elements=["job", "day"], set_={name: statement.excluded[name] for name in changed}
        ),
        [
            {
                "job": job,
                "day": when,
                "completed": day.statuses[Status.COMPLETED.value],
                "failed": day.statuses[Status.FAILED.value],
                "canceled": day.statuses[Status.CANCELED.value],
                "skipped": dict(day.skipped),
                "seconds": day.seconds,
            }
            for when, day in sorted(days.items())
        ],
    )


def _move_edge(session: Session, job: str, runs: Sequence[Row[Any]], skips: Sequence[Row[Any]]) -> None:
    gone = [row.scheduled_for for row in runs if row.scheduled_for is not None] + [row.last for row in skips]
    if not gone:
        return
    edge = max(gone) + _TICK
    before = or_(t.jobs.c.pruned_before.is_(None), t.jobs.c.pruned_before < edge)
    session.write(update(t.jobs).where(t.jobs.c.name == job, before).values(pruned_before=edge))


def _delete_runs(session: Session, runs: Sequence[Row[Any]]) -> None:
    if not runs:
        return
    session.write(delete(t.outputs).where(t.outputs.c.run.in_([row.id for row in runs])))
    session.write(delete(t.runs).where(t.runs.c.seq.in_([row.seq for row in runs])))


def _delete_locks(session: Session, keys: set[str], now: datetime) -> None:
    """Of locks that were made for one subject each, those that nobody holds or waits for."""
    if not keys:
        return
    table = t.locks.c
    waited_for = exists().where(t.IS_ORDERED, t.runs.c.lock == table.key)
    last = int((now - IDLE).timestamp() * 1000)
    idle = (table.run.is_(None), table.fence < last, not_(waited_for))
    query = select(table.key).where(session.among(table.key, keys), *idle).order_by(table.key)
    mine = session.rows(query.with_for_update(skip_locked=True)).scalars().all()
    if mine:
        # once more: a run may have come between the look and the lock
        session.write(delete(t.locks).where(session.among(table.key, mine), *idle))


def _old_outputs(session: Session, job: str, edge: datetime, limit: int) -> int:
    query = (
        select(t.outputs.c.run)
        .join(t.runs, t.runs.c.id == t.outputs.c.run)
        .where(t.outputs.c.job == job, t.outputs.c.at < edge, t.runs.c.finished_at < edge)
        .order_by(t.outputs.c.at)
        .limit(limit)
    )
    runs = sorted(set(session.rows(query).scalars()))
    if not runs:
        return 0
    return session.write(delete(t.outputs).where(t.outputs.c.run.in_(runs)))
