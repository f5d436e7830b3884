"""Scans as people are shown them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import func, select

from scheduler.core.scan import Aside, ScanReport
from scheduler.core.scan_queries import ScanView
from scheduler.store import tables as t
from scheduler.store.scans import SqlScans, report_of
from scheduler.store.session import Session


def views(session: Session, jobs: Collection[str]) -> list[ScanView]:
    states = {state.job: state for state in SqlScans(session).states()}
    table = t.scan_reports.c
    newest = select(func.max(table.seq)).where(session.among(table.job, jobs), table.dry_run.is_(False))
    rows = session.rows(select(t.scan_reports).where(table.seq.in_(newest.group_by(table.job))))
    last = {row.job: report_of(row) for row in rows}
    return [ScanView(job, states.get(job), last.get(job)) for job in jobs]


def reports(session: Session, job: str | None, run: str | None, limit: int) -> list[ScanReport]:
    table = t.scan_reports.c
    query = select(t.scan_reports).order_by(table.seq.desc()).limit(limit)
    if job is not None:
        query = query.where(table.job == job)
    if run is not None:
        query = query.where(table.run == run)
    return [report_of(row) for row in session.rows(query)]


def asides(session: Session, job: str | None, limit: int, shown: int) -> list[Aside]:
    table = t.scan_asides.c
    columns = (table.job, table.source, table.found_at, table.occurred_at, table.why)
    text = func.substr(table.raw, 1, shown).label("begins"), func.length(table.raw).label("length")
    query = select(*columns, *text).order_by(table.id.desc()).limit(limit)
    rows = session.rows(query if job is None else query.where(table.job == job))
    return [
        Aside(row.job, row.source, row.found_at, row.occurred_at, row.why, str(row.begins), int(row.length))
        for row in rows
    ]


def webhooks_overdue(session: Session, source: str, since: datetime, until: datetime) -> int:
    table = t.events.c
    where = (t.IS_MISSED, table.source == source, table.occurred_at >= since, table.occurred_at < until)
    return int(session.rows(select(func.count()).select_from(t.events).where(*where)).scalar_one())
