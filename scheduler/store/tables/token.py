"""Tokens: who may come in."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Table, Text, UniqueConstraint

from scheduler.store.tables.base import metadata
from scheduler.store.types import FreeText, UtcInstant

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", FreeText, nullable=False),
    Column("role", Text, nullable=False),
    # of the secret, which is kept nowhere
    Column("digest", Text, nullable=False),
    Column("created_at", UtcInstant, nullable=False),
    Column("author", FreeText, nullable=False),
    Column("expires_at", UtcInstant),
    Column("revoked_at", UtcInstant),
    Column("used_at", UtcInstant),
    Column("session", Boolean, nullable=False),
    Column("parent", Text),
    UniqueConstraint("digest"),
)
