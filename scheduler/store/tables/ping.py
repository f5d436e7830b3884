"""Pings that a dead man's switch outside has yet to hear."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, Text

from scheduler.store.tables.base import metadata
from scheduler.store.types import Big, UtcInstant

outgoing_pings = Table(
    "outgoing_pings",
    metadata,
    Column("seq", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("run", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("signal", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("created_at", UtcInstant, nullable=False),
    Column("not_before", UtcInstant, nullable=False),
    Column("tries", Integer, nullable=False),
    # the first of each job
    Index("outgoing_pings_job", "job", "seq"),
    sqlite_autoincrement=True,
)
