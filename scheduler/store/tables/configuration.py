"""What is in force: the configurations there were, the queues they name, and the values of the installation."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, Table, Text

from scheduler.store.tables.base import metadata
from scheduler.store.types import FreeText, JsonText, UtcInstant

generations = Table(
    "generations",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("hash", Text, nullable=False),
    Column("files", JsonText, nullable=False),
    Column("created_at", UtcInstant, nullable=False),
    Column("author", FreeText, nullable=False),
    Column("tzdata", Text, nullable=False),
    Column("schedule_code", Integer, nullable=False),
    # find(): has this text been in force before?
    Index("generations_hash", "hash", "id"),
)

installation = Table(
    "installation",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", FreeText, nullable=False),
)

queues = Table(
    "queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("concurrency", Integer),
    Column("rate", Float),
    Column("burst", Integer, nullable=False),
    Column("tokens", Float, nullable=False),
    Column("refilled_at", UtcInstant, nullable=False),
)
