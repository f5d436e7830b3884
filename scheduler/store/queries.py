"""The read models for people, over one reading transaction."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import func, literal, or_, select

from scheduler.core.event_queries import EventDetail, EventFilter, EventPage, Rejects
from scheduler.core.model import Output, Pause, Run, Skip, WaitsFor
from scheduler.core.notification import ChannelView, Sent
from scheduler.core.notification_queries import NotificationFilter
from scheduler.core.queries import (
    Gauges,
    GenerationLine,
    JobView,
    NodeView,
    Page,
    QueueView,
    RunDetail,
    RunFilter,
    Waiting,
)
from scheduler.core.scan import Aside, Hole, ScanReport
from scheduler.core.scan_queries import ScanView
from scheduler.core.state import Flip
from scheduler.core.value_object import value_object
from scheduler.store import event_views, history, notification_views, rejects, scan_views
from scheduler.store import tables as t
from scheduler.store.flips import flips_of
from scheduler.store.gauges import gauges, last_seq, node_views, queue_views, waiting_by_job
from scheduler.store.kept_locks import held_up
from scheduler.store.pauses import pauses_of
from scheduler.store.rows import RUN, STATE, WHOLE_RUN, attempt_of, runs_of, skip_of, state_of, whole_runs
from scheduler.store.scans import SqlScans
from scheduler.store.session import Session

AHEAD = 1_000
"""Runs before a waiting one are counted up to this number."""


@value_object
class SqlQueries:
    session: Session

    def jobs(self, now: datetime, names: Collection[str] | None = None, q: str = "") -> list[JobView]:
        """Present jobs by name (named ones also if removed; the canary only if named); `q` must occur in the name, in
        any case."""
        query = select(*STATE, t.jobs.c.definition).order_by(t.jobs.c.name)
        query = query.where(t.IS_PRESENT if names is None else t.jobs.c.name.in_(names))
        if q:
            query = query.where(func.lower(t.jobs.c.name).contains(q.lower(), autoescape=True))
        rows = self.session.rows(query).all()
        found = [row.name for row in rows]
        if not found:
            return []
        running: dict[str, list[Run]] = {}
        of_these = select(*RUN).where(t.IS_RUNNING, self.session.among(t.runs.c.job, found)).order_by(t.runs.c.seq)
        for run in runs_of(self.session.rows(of_these)):
            running.setdefault(run.job, []).append(run)
        waiting = waiting_by_job(self.session)
        last = self._last_runs(found)
        failures = self._last_failures(found)
        skips = self._last_skips(found)
        pauses: dict[str, list[Pause]] = {}
        for pause in pauses_of(self.session, found, now):
            pauses.setdefault(pause.job, []).append(pause)
        return [
            JobView(
                state=state_of(row),
                definition=row.definition,
                running=tuple(running.get(row.name, ())),
                waiting=waiting.get(row.name, 0),
                last=last.get(row.name),
                last_failure=failures.get(row.name),
                pause=next((one for one in pauses.get(row.name, ()) if one.start <= now), None),
                upcoming=next((one for one in pauses.get(row.name, ()) if one.start > now), None),
                last_skip=skips.get(row.name),
            )
            for row in rows
        ]

    def _last_runs(self, jobs: Collection[str]) -> dict[str, Run]:
        seqs = select(last_seq(t.runs.c.started_at)).select_from(t.jobs).where(self.session.among(t.jobs.c.name, jobs))
        rows = self.session.rows(select(*RUN).where(t.runs.c.seq.in_(seqs)))
        return {run.job: run for run in runs_of(rows)}

    def _last_failures(self, jobs: Collection[str]) -> dict[str, Run]:
        failing = (self.session.among(t.jobs.c.name, jobs), t.jobs.c.consecutive_failures > 0)
        seqs = list(self.session.rows(select(t.jobs.c.last_failure_seq).where(*failing)).scalars())
        if not seqs:
            return {}
        rows = self.session.rows(select(*RUN).where(self.session.among(t.runs.c.seq, seqs)))
        return {run.job: run for run in runs_of(rows)}

    def _last_skips(self, jobs: Collection[str]) -> dict[str, Skip]:
        newest = select(func.max(t.skips.c.id)).where(t.skips.c.job == t.jobs.c.name).correlate(t.jobs)
        ids = select(newest.scalar_subquery()).select_from(t.jobs).where(self.session.among(t.jobs.c.name, jobs))
        return {row.job: skip_of(row) for row in self.session.rows(select(t.skips).where(t.skips.c.id.in_(ids)))}

    def history(self, which: RunFilter, limit: int = 50, cursor: str | None = None) -> Page:
        """Raises InvalidInput for a cursor that this method did not hand out."""
        return history.history(self.session, which, limit, cursor)

    def run(self, run: str) -> RunDetail | None:
        found = whole_runs(self.session.rows(select(*WHOLE_RUN).where(t.runs.c.id == run)))
        if not found:
            return None
        attempts = select(t.attempts).where(t.attempts.c.run == run).order_by(t.attempts.c.number)
        retries = select(t.runs.c.id).where(t.runs.c.retry_of == run).order_by(t.runs.c.seq)
        return RunDetail(
            run=found[0],
            attempts=tuple(attempt_of(one) for one in self.session.rows(attempts)),
            waiting=self.waiting([run]).get(run),
            retried_by=tuple(self.session.rows(retries).scalars()),
        )

    def find_runs(self, text: str, limit: int = 10) -> list[str]:
        return history.find_runs(self.session, text, limit)

    def output(self, run: str, attempt: int | None = None) -> Output | None:
        """What that attempt wrote, with attempt None the last one of which that is known: the last that is over, or one
        that tells meanwhile. None: it wrote nothing, or that is kept no longer."""
        table = t.outputs.c
        columns = (table.run, table.attempt, table.head, table.tail, table.omitted, table.complete)
        query = select(*columns).where(table.run == run).order_by(table.attempt.desc()).limit(1)
        if attempt is not None:
            query = query.where(table.attempt == attempt)
        else:
            over = (t.attempts.c.run == run, t.attempts.c.finished_at.is_not(None))
            last = select(func.coalesce(func.max(t.attempts.c.number), 0)).where(*over).scalar_subquery()
            query = query.where(table.attempt >= last)
        row = self.session.rows(query).first()
        return None if row is None else Output(**row._mapping)

    def waiting(self, runs: Collection[str]) -> dict[str, Waiting]:
        """For the PENDING ones among these runs."""
        holder = t.runs.alias("holder")
        query = (
            select(
                t.runs.c.id,
                t.runs.c.seq,
                t.runs.c.queue,
                t.runs.c.priority,
                t.runs.c.waits_for,
                t.runs.c.not_before,
                t.runs.c.lock,
                holder.c.id.label("holder_id"),
                holder.c.job.label("holder_job"),
                (holder.c.status == t.FAILED).label("holder_dead"),
            )
            .outerjoin(t.locks, t.locks.c.key == t.runs.c.lock)
            .outerjoin(holder, holder.c.id == t.locks.c.run)
            .where(t.runs.c.id.in_(runs), t.runs.c.status == t.PENDING)
        )
        return {row.id: self._waiting(row) for row in self.session.rows(query)}

    def _waiting(self, row: Any) -> Waiting:
        match row.waits_for:
            case WaitsFor.TIME:
                return Waiting("time", until=row.not_before)
            case WaitsFor.PAUSE:
                return Waiting("pause")
            case WaitsFor.LOCK:
                return _behind(row)
        if row.holder_id is not None:
            return _behind(row)
        first = or_(t.runs.c.priority > row.priority, (t.runs.c.priority == row.priority) & (t.runs.c.seq < row.seq))
        before = select(literal(1)).where(t.READY, t.runs.c.queue == row.queue, first).limit(AHEAD).subquery()
        ahead = self.session.rows(select(func.count()).select_from(before)).scalar_one()
        return Waiting("queue", queue=row.queue, ahead=ahead)

    def queues(self) -> list[QueueView]:
        return queue_views(self.session)

    def nodes(self) -> list[NodeView]:
        return node_views(self.session)

    def scans(self, jobs: Collection[str]) -> list[ScanView]:
        """Of each of these jobs, in their order."""
        return scan_views.views(self.session, jobs)

    def scan_reports(self, job: str | None = None, run: str | None = None, limit: int = 20) -> list[ScanReport]:
        """The newest first, also of jobs that are gone."""
        return scan_views.reports(self.session, job, run, limit)

    def scan_holes(self, source: str | None = None) -> list[Hole]:
        """Oldest first."""
        return SqlScans(self.session).holes(source)

    def scan_asides(self, job: str | None, limit: int, shown: int) -> list[Aside]:
        """The newest first, each with so many characters of its text."""
        return scan_views.asides(self.session, job, limit, shown)

    def webhooks_overdue(self, source: str, since: datetime, until: datetime) -> int:
        """Events that a scan found, whose webhook has not come and that occurred in `[since, until)`."""
        return scan_views.webhooks_overdue(self.session, source, since, until)

    def generations(self, limit: int = 20) -> list[GenerationLine]:
        """Newest first."""
        table = t.generations.c
        columns = (table.id, table.hash, table.created_at, table.author, table.tzdata, table.schedule_code)
        query = select(*columns).order_by(table.id.desc()).limit(limit)
        return [GenerationLine(**row._mapping) for row in self.session.rows(query)]

    def events(self, which: EventFilter, limit: int = 50, cursor: str | None = None) -> EventPage:
        return event_views.events(self.session, which, limit, cursor)

    def event(self, source: str, event: str) -> EventDetail | None:
        return event_views.event(self.session, source, event)

    def held(self) -> dict[str, int]:
        return event_views.held(self.session)

    def sources_of(self, event: str, among: Collection[str]) -> list[str]:
        return event_views.sources_of(self.session, event, among)

    def rejects(self, source: str = "", limit: int = 50) -> Rejects:
        return rejects.newest(self.session, source, limit)

    def dead_letters(self, job: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """FAILED runs with a payload that nobody has retried or discarded, newest first, with their payloads."""
        return history.dead_letters(self.session, job, limit, cursor)

    def held_up(self, runs: Collection[str] | None = None) -> dict[tuple[str, str], int]:
        return held_up(self.session, runs)

    def flips(self, job: str, limit: int = 20) -> list[Flip]:
        return flips_of(self.session, job, limit)

    def notifications(self, which: NotificationFilter, limit: int = 50) -> list[Sent]:
        return notification_views.notifications(self.session, which, limit)

    def channels(self) -> list[ChannelView]:
        return notification_views.channels(self.session)

    def gauges(self, now: datetime, jobs: Collection[str] | None = None) -> Gauges:
        return gauges(self.session, now, jobs)

    def overdue(self, before: datetime) -> list[str]:
        """Present, enabled jobs that were due before that instant and are not planned, most overdue first."""
        where = (t.jobs.c.enabled, t.jobs.c.removed_at.is_(None), t.jobs.c.next_due_at < before)
        return list(self.session.rows(select(t.jobs.c.name).where(*where).order_by(t.jobs.c.next_due_at)).scalars())


def _behind(row: Any) -> Waiting:
    return Waiting(
        "lock",
        lock=row.lock,
        holder_run=row.holder_id,
        holder_job=row.holder_job,
        holder_dead=bool(row.holder_dead),
    )
