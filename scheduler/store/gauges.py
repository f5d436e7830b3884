"""The numbers that are watched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Text, and_, func, literal, null, select, union_all

from scheduler.core.canary import CANARY
from scheduler.core.queries import FAREWELL, Gauges, JobGauge, NodeView, QueueView
from scheduler.store import tables as t
from scheduler.store.nodes import SqlNodes
from scheduler.store.pauses import in_force
from scheduler.store.rows import STATE, queue_of, state_of
from scheduler.store.session import Session

_WAITING = {"time": t.WAITS_TIME, "lock": t.WAITS_LOCK, "pause": t.WAITS_PAUSE}


def waiting_by_job(session: Session) -> dict[str, int]:
    """PENDING runs per job."""
    return counts(session, "waiting of")["waiting of"]


_NEWEST = "newest generation"
_COUNTED: Mapping[str, tuple[ColumnElement[str], ColumnElement[bool]]] = {
    "running": (t.runs.c.queue, t.IS_RUNNING),
    "ready": (t.runs.c.queue, t.READY),
    **{f"waiting for {word}": (t.runs.c.queue, where) for word, where in _WAITING.items()},
    "running on": (t.runs.c.node, t.IS_RUNNING),
    "running of": (t.runs.c.job, t.IS_RUNNING),
    "waiting of": (t.runs.c.job, t.IS_PENDING),
    "dead letters of": (t.runs.c.job, t.DEAD_LETTER),
}


def _counting(word: str) -> Select[Any]:
    if word == _NEWEST:
        return _numbers(word, literal("", Text), func.coalesce(func.max(t.generations.c.id), 0))
    name, where = _COUNTED[word]
    return _numbers(word, name, func.count()).where(where).group_by(name)


def _numbers(word: str, *columns: ColumnElement[Any]) -> Select[Any]:
    return select(literal(word, Text), *columns)


_COUNTS = {word: _counting(word) for word in (_NEWEST, *_COUNTED)}
_OF_QUEUES = ("running", "ready", *(f"waiting for {word}" for word in _WAITING))


def counts(session: Session, *what: str) -> dict[str, dict[str, int]]:
    """These of _COUNTS, by name of the queue, node or job: one statement, of which each part has its index."""
    found: dict[str, dict[str, int]] = {word: {} for word in what}
    for word, name, number in session.connection.execute(union_all(*(_COUNTS[word] for word in what))):
        found[word][name] = number
    return found


def queue_views(session: Session, counted: Mapping[str, Mapping[str, int]] | None = None) -> list[QueueView]:
    """By name; the canary's is nobody's business. `counted`: what `counts` says of queues, if that is known."""
    counted = counted or counts(session, *_OF_QUEUES)
    first = select(func.min(t.runs.c.seq)).where(t.READY, t.runs.c.queue == t.queues.c.name)
    oldest = select(t.runs.c.created_at).where(t.runs.c.seq == first.scalar_subquery().correlate(t.queues))
    query = select(t.queues, oldest.scalar_subquery().correlate(t.queues).label("oldest"))
    return [
        QueueView(
            queue_of(row),
            counted["running"].get(row.name, 0),
            counted["ready"].get(row.name, 0),
            {word: n for word in _WAITING if (n := counted[f"waiting for {word}"].get(row.name, 0))},
            row.oldest,
            None if row.rate is None else row.tokens,
        )
        for row in session.rows(query.where(t.queues.c.name != CANARY).order_by(t.queues.c.name))
    ]


def node_views(session: Session, running: Mapping[str, int] | None = None) -> list[NodeView]:
    """By start. `running`: how many runs each holds, if that is known."""
    held = counts(session, "running on")["running on"] if running is None else running
    return [NodeView(node, held.get(node.id, 0)) for node in SqlNodes(session).all()]


_FAILING_CHANNELS = select(t.channels.c.name, t.channels.c.failing_since).where(t.channels.c.failing_since.is_not(None))


def gauges(session: Session, now: datetime, names: Collection[str] | None = None) -> Gauges:
    """`names`: only these jobs are looked up one by one."""
    counted = counts(session, *_COUNTS)
    jobs = () if names is not None and not names else tuple(_jobs(session, now, names, counted))
    return Gauges(
        jobs,
        tuple(queue_views(session, counted)),
        tuple(node_views(session, counted["running on"])),
        counted[_NEWEST][""],
        counted["dead letters of"],
        () if names is not None else _gone(session, now),
        dict(session.rows(_FAILING_CHANNELS).all()),
    )


def _jobs(
    session: Session, now: datetime, names: Collection[str] | None, counted: Mapping[str, Mapping[str, int]]
) -> Iterator[JobGauge]:
    these: ColumnElement[bool] = t.IS_PRESENT
    if names is not None:
        these = and_(these, session.among(t.jobs.c.name, names))
    started, ended, paused, trying = _moments(session, these, now)
    for row in session.rows(select(*STATE).where(these).order_by(t.jobs.c.name)):
        state = state_of(row)
        end = ended.get(state.name)
        yield JobGauge(
            state=state,
            running=counted["running of"].get(state.name, 0),
            waiting=counted["waiting of"].get(state.name, 0),
            dead_letters=counted["dead letters of"].get(state.name, 0),
            paused_since=None if state.name not in paused else paused[state.name].started_at,
            attempt_since=None if state.name not in trying else trying[state.name].started_at,
            last_start_at=None if state.name not in started else started[state.name].started_at,
            last_end_at=None if end is None else end.finished_at,
            last_duration=None if end is None else seconds_of(end),
            last_exit_code=None if end is None else end.exit_code,
        )


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


def _moments(session: Session, jobs: ColumnElement[bool], now: datetime) -> list[dict[str, Row[Any]]]:
    """By job: the run of it that started last, the one that ended last, and (as `started_at`) since when it is paused,
    and when the oldest of its attempts in progress began."""
    runs = t.runs.c
    parts = []
    for word, instant in (("started", runs.started_at), ("ended", runs.finished_at)):
        present = select(last_seq(instant)).select_from(t.jobs).where(jobs)
        columns = (runs.job, runs.started_at, runs.finished_at, runs.took, runs.exit_code)
        parts.append(_numbers(word, *columns).where(runs.seq.in_(present)))
    since = func.min(t.pauses.c.start)
    nothing = [null() for _ in range(3)]
    parts.append(_numbers("paused", t.pauses.c.job, since, *nothing).where(in_force(now)).group_by(t.pauses.c.job))
    current = and_(t.attempts.c.run == runs.id, t.attempts.c.number == runs.attempt)
    trying = _numbers("trying", runs.job, func.min(t.attempts.c.started_at), *nothing).join(t.attempts, current)
    parts.append(trying.where(t.IS_RUNNING).group_by(runs.job))
    found: dict[str, dict[str, Row[Any]]] = {"started": {}, "ended": {}, "paused": {}, "trying": {}}
    for row in session.connection.execute(union_all(*parts)):
        found[row[0]][row.job] = row
    return list(found.values())
