"""Where scans stand, what they reported, what cannot be proven, and what nobody could read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, delete, select, update

from scheduler.core.compensator import Undecodable, Window
from scheduler.core.scan import Aside, Counts, Hole, ScanReport, ScanState
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.bulk import insert_all
from scheduler.store.session import Session

REPORTS = 5_000
"""Reports of one job that are kept, the newest."""

_COUNTED = {field.name for field in fields(Counts)}


@value_object
class SqlScans:
    session: Session

    def state(self, job: str, *, lock: bool = False) -> ScanState | None:
        """With `lock`, nobody else changes it until the transaction ends."""
        query = select(t.scan_states).where(t.scan_states.c.job == job)
        row = self.session.rows(query.with_for_update() if lock else query).first()
        return None if row is None else _state(row)

    def states(self) -> list[ScanState]:
        """By job."""
        return [_state(row) for row in self.session.rows(select(t.scan_states).order_by(t.scan_states.c.job))]

    def save(self, state: ScanState) -> None:
        """Inserts or replaces."""
        row = {
            "job": state.job,
            "source": state.source,
            "watermark": state.watermark,
            "window_start": None if state.window is None else state.window.start,
            "window_end": None if state.window is None else state.window.end,
            "cursor": state.cursor,
            "counts": _counts_row(state.counts),
            "began_at": state.began_at,
            "set_back_at": state.set_back_at,
            "query": state.query,
            "run": state.run,
        }
        statement = self.session.insert(t.scan_states)
        changed = {name: statement.excluded[name] for name in row if name != "job"}
        self.session.write(statement.on_conflict_do_update(index_elements=["job"], set_=changed), row)

    def report(self, report: ScanReport) -> None:
        """Keeps it, of its job's reports the newest `REPORTS`, and its holes; a hole that overlaps or touches the last
        one of the same job and reason extends that."""
        self.session.write(t.scan_reports.insert(), _report_row(report))
        table = t.scan_reports.c
        mine = table.job == report.job
        oldest = select(table.seq).where(mine).order_by(table.seq.desc()).offset(REPORTS).limit(1)
        last = self.session.rows(oldest).scalar()
        if last is not None:
            self.session.write(delete(t.scan_reports).where(mine, table.seq <= last))
        for hole in sorted(report.holes, key=lambda hole: hole.start):
            self._note(hole)

    def _note(self, hole: Hole) -> None:
        table = t.scan_holes.c
        query = (
            select(table.id, table.start, table.end)
            .where(table.job == hole.job, table.end >= hole.start, table.why == hole.why)
            .where(table.source == hole.source, table.start <= hole.end)
            .order_by(table.end.desc())
            .limit(1)
        )
        before = self.session.rows(query.with_for_update()).first()
        if before is None:
            self.session.write(t.scan_holes.insert(), asdict(hole))
            return
        together = {"start": min(before.start, hole.start), "end": max(before.end, hole.end)}
        self.session.write(update(t.scan_holes).where(table.id == before.id).values(together))

    def reports(self, job: str | None, limit: int) -> list[ScanReport]:
        """The newest first."""
        table = t.scan_reports.c
        query = select(t.scan_reports).order_by(table.seq.desc()).limit(limit)
        rows = self.session.rows(query if job is None else query.where(table.job == job))
        return [report_of(row) for row in rows]

    def holes(self, source: str | None = None, since: datetime | None = None) -> list[Hole]:
        """Those that end after `since`, oldest first."""
        table = t.scan_holes.c
        query = select(t.scan_holes).order_by(table.start, table.id)
        if source is not None:
            query = query.where(table.source == source)
        if since is not None:
            query = query.where(table.end > since)
        return [
            Hole(row.job, row.source, row.start, row.end, row.why, row.found_at) for row in self.session.rows(query)
        ]

    def put_aside(self, job: str, source: str, items: Sequence[Undecodable], now: datetime, keep: int) -> None:
        """Keeps raw items of a list that nobody could read; of a job the newest `keep`, the same text once."""
        if not items:
            return
        rows = [
            {
                "job": job,
                "source": source,
                "digest": hashlib.sha256(item.raw.encode("utf-8", "surrogatepass")).hexdigest(),
                "found_at": now,
                "occurred_at": item.occurred_at,
                "why": item.why,
                "raw": item.raw,
            }
            for item in items
        ]
        insert_all(self.session, t.scan_asides, rows, new_only=True)
        table = t.scan_asides.c
        oldest = select(table.id).where(table.job == job).order_by(table.id.desc()).offset(keep).limit(1)
        last = self.session.rows(oldest).scalar()
        if last is not None:
            self.session.write(delete(t.scan_asides).where(table.job == job, table.id <= last))

    def aside(self, source: str, limit: int) -> list[tuple[str, datetime, Undecodable]]:
        """(job, found at, item), the newest first."""
        table = t.scan_asides.c
        query = select(t.scan_asides).where(table.source == source).order_by(table.id.desc()).limit(limit)
        return [
            (row.job, row.found_at, Undecodable(row.raw, row.why, row.occurred_at)) for row in self.session.rows(query)
        ]


def _counts_row(counts: Counts) -> dict[str, Any]:
    row = asdict(counts)
    row["oldest_unseen"] = None if counts.oldest_unseen is None else counts.oldest_unseen.total_seconds()
    return row


def _counts(row: Mapping[str, Any]) -> Counts:
    """What this release does not count was counted by a newer one."""
    values = {name: value for name, value in row.items() if name in _COUNTED}
    age = values["oldest_unseen"]
    return Counts(**{**values, "oldest_unseen": None if age is None else timedelta(seconds=age)})


def _state(row: Row[Any]) -> ScanState:
    window = None if row.window_start is None else Window(row.window_start, row.window_end)
    counts = _counts(row.counts)
    return ScanState(
        job=row.job,
        source=row.source,
        watermark=row.watermark,
        window=window,
        cursor=row.cursor,
        counts=counts,
        began_at=row.began_at,
        set_back_at=row.set_back_at,
        query=row.query,
        run=row.run,
    )


def _report_row(report: ScanReport) -> dict[str, Any]:
    return {
        "job": report.job,
        "source": report.source,
        "run": report.run,
        "window_start": report.window.start,
        "window_end": report.window.end,
        "counts": _counts_row(report.counts) | _asides_row(report.asides),
        "began_at": report.began_at,
        "ended_at": report.ended_at,
        "complete": report.complete,
        "why": report.why,
        "holes": [
            [hole.start.isoformat(), hole.end.isoformat(), hole.why, hole.found_at.isoformat()] for hole in report.holes
        ],
        "unlisted": report.unlisted,
        "unlisted_ids": report.unlisted_ids,
        "lag": None if report.lag is None else report.lag.total_seconds(),
        "dry_run": report.dry_run,
    }


def _asides_row(asides: Sequence[Aside]) -> dict[str, Any]:
    """Beside the counts, where releases that do not know them look for none."""
    if not asides:
        return {}
    times = [None if one.occurred_at is None else one.occurred_at.isoformat() for one in asides]
    return {"asides": [[at, one.why, one.begins, one.length] for at, one in zip(times, asides, strict=True)]}


def report_of(row: Row[Any]) -> ScanReport:
    instant = datetime.fromisoformat
    return ScanReport(
        job=row.job,
        source=row.source,
        run=row.run,
        window=Window(row.window_start, row.window_end),
        counts=_counts(row.counts),
        began_at=row.began_at,
        ended_at=row.ended_at,
        complete=row.complete,
        why=row.why,
        holes=tuple(
            Hole(row.job, row.source, instant(start), instant(end), why, instant(found))
            for start, end, why, found in row.holes
        ),
        unlisted=row.unlisted,
        unlisted_ids=tuple(row.unlisted_ids),
        lag=None if row.lag is None else timedelta(seconds=row.lag),
        dry_run=row.dry_run,
        asides=tuple(
            Aside(row.job, row.source, row.ended_at, None if at is None else instant(at), why, begins, length)
            for at, why, begins, length in row.counts.get("asides", ())
        ),
    )
