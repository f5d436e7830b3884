"""History apart from runs: instants that did not run, and what is left of runs that were pruned."""

from __future__ import annotations

from sqlalchemy import Column, Date, Float, Index, Table, Text

from scheduler.store.tables.base import metadata
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

skips = Table(
    "skips",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("first", UtcInstant, nullable=False),
    Column("last", UtcInstant, nullable=False),
    Column("count", Big, nullable=False),
    Column("blocked_by", Text),
    Column("detail", FreeText, nullable=False),
    # a job's history, newest first
    Index("skips_job", "job", "id"),
    # ranges that touch a period
    Index("skips_last", "job", "last"),
    sqlite_autoincrement=True,
)

summaries = Table(
    "summaries",
    metadata,
    Column("job", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("completed", Big, nullable=False),
    Column("failed", Big, nullable=False),
    Column("canceled", Big, nullable=False),
    Column("skipped", JsonText, nullable=False),
    Column("seconds", Float, nullable=False),
)
