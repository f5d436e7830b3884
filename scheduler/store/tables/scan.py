"""Scans: where each stands, what they reported, what cannot be proven, what could not be read."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, Index, Table, Text, UniqueConstraint

from scheduler.store.tables.base import metadata
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

scan_states = Table(
    "scan_states",
    metadata,
    Column("job", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("watermark", UtcInstant),
    Column("window_start", UtcInstant),
    Column("window_end", UtcInstant),
    Column("cursor", JsonText),
    Column("counts", JsonText, nullable=False),
    Column("began_at", UtcInstant),
    Column("query", Text, nullable=False),
    Column("run", Text),
    Column("set_back_at", UtcInstant),
)

scan_reports = Table(
    "scan_reports",
    metadata,
    Column("seq", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("window_start", UtcInstant, nullable=False),
    Column("window_end", UtcInstant, nullable=False),
    Column("counts", JsonText, nullable=False),
    Column("began_at", UtcInstant, nullable=False),
    Column("ended_at", UtcInstant, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("why", FreeText, nullable=False),
    Column("holes", JsonText, nullable=False),
    Column("unlisted", Big, nullable=False),
    Column("unlisted_ids", JsonText, nullable=False),
    Column("lag", Float),
    Column("dry_run", Boolean, nullable=False),
    # the newest of a job
    Index("scan_reports_job", "job", "seq"),
    sqlite_autoincrement=True,
)

scan_holes = Table(
    "scan_holes",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("start", UtcInstant, nullable=False),
    Column("end", UtcInstant, nullable=False),
    Column("why", FreeText, nullable=False),
    Column("found_at", UtcInstant, nullable=False),
    # the one that the next of a job may extend
    Index("scan_holes_job", "job", "end"),
)

scan_asides = Table(
    "scan_asides",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("found_at", UtcInstant, nullable=False),
    Column("occurred_at", UtcInstant),
    Column("why", FreeText, nullable=False),
    Column("raw", FreeText, nullable=False),
    # the same text once
    UniqueConstraint("job", "digest"),
    # the newest of a job, of a source
    Index("scan_asides_job", "job", "id"),
    Index("scan_asides_source", "source", "id"),
)
