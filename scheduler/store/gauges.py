"""The numbers that are watched."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, select

from scheduler.core.canary import CANARY
from scheduler.core.queries import FAREWELL, Gauges, JobGauge, NodeView, QueueView
from scheduler.store import tables as t
from scheduler.store.generations import SqlGenerations
from scheduler.store.nodes import SqlNodes
from scheduler.store.pauses import in_force
from scheduler.store.rows import STATE, queue_of, state_of
from scheduler.store.session import Session

_WAITING = {"time": t.WAITS_TIME, "lock": t.WAITS_LOCK, "pause": t.WAITS_PAUSE}


def count_by(session: Session, column: ColumnElement[str], where: ColumnElement[bool]) -> dict[str, int]:
    query = select(column, func.count()).where(where).group_by(column)
    return dict(session.rows(query).all())


def waiting_by_job(session: Session) -> dict[str, int]:
    """PENDING runs per job."""
    return count_by(session, t.runs.c.job, t.IS_PENDING)


def queue_views(session: Session) -> list[QueueView]:
    """By name; the canary's is nobody's business."""
    running = count_by(session, t.runs.c.queue, t.IS_RUNNING)
    ready = count_by(session, t.runs.c.queue, t.READY)
    waiting: dict[str, dict[str, int]] = {}
    for word, where in _WAITING.items():
        for queue, number in count_by(session, t.runs.c.queue, where).items():
            waiting.setdefault(queue, {})[word] = number
    first = select(func.min(t.runs.c.seq)).where(t.READY).group_by(t.runs.c.queue)
    oldest_query = select(t.runs.c.queue, t.runs.c.created_at).where(t.runs.c.seq.in_(first))
    oldest: dict[str, datetime] = dict(session.rows(oldest_query).all())
    return [
        QueueView(
            queue_of(row),
            running.get(row.name, 0),
            ready.get(row.name, 0),
            waiting.get(row.name, {}),
            oldest.get(row.name),
            None if row.rate is None else row.tokens,
        )
        for row in session.rows(select(t.queues).where(t.queues.c.name != CANARY).order_by(t.queues.c.name))
    ]


def node_views(session: Session) -> list[NodeView]:
    """By start."""
    running = count_by(session, t.runs.c.node, t.IS_RUNNING)
    return [NodeView(node, running.get(node.id, 0)) for node in SqlNodes(session).all()]


def gauges(session: Session, now: datetime, names: Collection[str] | None = None) -> Gauges:
    """`names`: only these jobs are looked up one by one."""
    these: ColumnElement[bool] = t.IS_PRESENT
    if names is not None:
        these = and_(these, session.among(t.jobs.c.name, names))
    running = count_by(session, t.runs.c.job, t.IS_RUNNING)
    waiting = waiting_by_job(session)
    dead = count_by(session, t.runs.c.job, t.DEAD_LETTER)
    paused_query = select(t.pauses.c.job, func.min(t.pauses.c.start)).where(in_force(now)).group_by(t.pauses.c.job)
    paused: dict[str, datetime] = dict(session.rows(paused_query).all())
    started: dict[str, datetime] = {row.job: row.started_at for row in session.rows(_last(t.runs.c.started_at, these))}
    ended = {row.job: row for row in session.rows(_last(t.runs.c.finished_at, these))}
    jobs = []
    for row in session.rows(select(*STATE).where(these).order_by(t.jobs.c.name)):
        state = state_of(row)
        end = ended.get(state.name)
        jobs.append(
            JobGauge(
                state=state,
                running=running.get(state.name, 0),
                waiting=waiting.get(state.name, 0),
                dead_letters=dead.get(state.name, 0),
                paused_since=paused.get(state.name),
                last_start_at=started.get(state.name),
                last_end_at=None if end is None else end.finished_at,
                last_duration=None if end is None else seconds_of(end),
                last_exit_code=None if end is None else end.exit_code,
            )
        )
    generation = SqlGenerations(session).newest_id()
    gone = () if names is not None else _gone(session, now)
    return Gauges(tuple(jobs), tuple(queue_views(session)), tuple(node_views(session)), generation, dead, gone)


def _gone(session: Session, now: datetime) -> tuple[str, ...]:
    query = select(t.jobs.c.name).where(t.jobs.c.removed_at > now - FAREWELL).order_by(t.jobs.c.name)
    return tuple(name for (name,) in session.rows(query))


def seconds_of(row: Row[Any]) -> float:
    """How long a finished run was at work; if nobody measured it, from its start to its end, which is more."""
    if row.took is not None:
        return float(row.took)
    seconds: float = (row.finished_at - row.started_at).total_seconds()
    return max(0.0, seconds)


def last_seq(instant: ColumnElement[Any]) -> ColumnElement[Any]:
    """Number of the job's run with the greatest `instant`, among those that started; to be used in a query on jobs."""
    # the index condition is repeated: it is what makes this one seek
    query = select(t.runs.c.seq).where(
        t.runs.c.job == t.jobs.c.name, instant.is_not(None), t.runs.c.started_at.is_not(None)
    )
    return query.order_by(instant.desc()).limit(1).correlate(t.jobs).scalar_subquery()


def _last(instant: ColumnElement[Any], jobs: ColumnElement[bool]) -> Any:
    columns = (t.runs.c.job, t.runs.c.started_at, t.runs.c.finished_at, t.runs.c.took, t.runs.c.exit_code)
    present = select(last_seq(instant)).select_from(t.jobs).where(jobs)
    return select(*columns).where(t.runs.c.seq.in_(present))
