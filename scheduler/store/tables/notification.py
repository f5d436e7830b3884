"""Notifications: what people are told, and how the channels stand by which they are."""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, Table, Text, UniqueConstraint

from scheduler.store.tables.base import metadata, partial, word
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

notifications = Table(
    "notifications",
    metadata,
    Column("id", Big, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("job", Text, nullable=False),
    Column("run", Text),
    Column("since", UtcInstant, nullable=False),
    Column("detail", JsonText, nullable=False),
    Column("created_at", UtcInstant, nullable=False),
    Column("fate", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", UtcInstant, nullable=False),
    Column("settled_at", UtcInstant),
    Column("error", FreeText),
    Column("together", Integer, nullable=False),
    UniqueConstraint("channel", "key"),
)
IS_WAITING = notifications.c.fate == word("waiting")
# due(), once a second for ever; waiting()
partial("notifications_waiting", notifications.c.channel, notifications.c.next_at, where=IS_WAITING)
# prune()
partial("notifications_settled", notifications.c.settled_at, where=notifications.c.settled_at.is_not(None))

channels = Table(
    "channels",
    metadata,
    Column("name", Text, primary_key=True),
    # the node that sends to it at present, and until when nobody else does
    Column("held_by", Text),
    Column("held_until", UtcInstant),
    Column("messages", Float, nullable=False),
    Column("paced_at", UtcInstant),
    Column("not_before", UtcInstant),
    Column("failing_since", UtcInstant),
    Column("error", FreeText),
    Column("answered_at", UtcInstant),
)
