"""Nodes: the daemons that run, or ran."""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, Table, Text

from scheduler.store.tables.base import metadata
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

nodes = Table(
    "nodes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("host", FreeText, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("started_at", UtcInstant, nullable=False),
    Column("lease", Float),
    Column("slots", Integer, nullable=False),
    Column("queues", JsonText),
    Column("state", Text, nullable=False),
    Column("beat", Big, nullable=False),
    Column("beat_at", UtcInstant, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("clock_offset", Float, nullable=False),
    Column("leaving_at", UtcInstant),
    Column("hints", FreeText),
    Column("aside", FreeText),
)
