"""Attempts at runs, and what they wrote."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, LargeBinary, Table, Text

from scheduler.store.tables.base import metadata
from scheduler.store.types import Big, FreeText, UtcInstant

attempts = Table(
    "attempts",
    metadata,
    Column("run", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("node", Text, nullable=False),
    Column("fence", Big, nullable=False),
    Column("started_at", UtcInstant, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("finished_at", UtcInstant),
    Column("outcome", Text),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("error", FreeText),
    Column("left", Integer, nullable=False),
    Column("took", Float),
)

outputs = Table(
    "outputs",
    metadata,
    Column("run", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("job", Text, nullable=False),
    Column("at", UtcInstant, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("tail", LargeBinary, nullable=False),
    Column("omitted", Big, nullable=False),
    Column("complete", Boolean, nullable=False),
    # outputs are kept shorter than runs
    Index("outputs_age", "job", "at"),
)
