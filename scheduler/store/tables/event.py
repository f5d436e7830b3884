"""Events: the inbox, what each one said, who has listed it, and the requests that were refused."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    and_,
    false,
    func,
    true,
)

from scheduler.store.tables.base import metadata, partial, word
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

SCAN = word("scan")

events = Table(
    "events",
    metadata,
    Column("seq", Big, primary_key=True),
    Column("source", Text, nullable=False),
    Column("id", FreeText, nullable=False),
    Column("via", Text, nullable=False),
    Column("received_at", UtcInstant, nullable=False),
    Column("type", FreeText, nullable=False),
    Column("subject", FreeText, nullable=False),
    Column("occurred_at", UtcInstant),
    Column("content_type", FreeText, nullable=False),
    Column("vouched_by", FreeText, nullable=False),
    Column("found_by", Text, nullable=False),
    Column("problems", JsonText, nullable=False),
    Column("webhook_at", UtcInstant),
    Column("duplicates", Big, nullable=False),
    Column("held", Boolean, nullable=False),
    # the identity of an event: who tells it a second time changes nothing
    UniqueConstraint("source", "id"),
    # a source's events, newest first
    Index("events_source", "source", "seq"),
    # retention
    Index("events_received", "source", "received_at"),
    sqlite_autoincrement=True,
)

IS_HELD = events.c.held.is_(true())
IS_FREE = events.c.held.is_(false())
IS_UNDATED = events.c.occurred_at.is_(None)
CAME_BY_WEBHOOK = events.c.webhook_at.is_not(None)
IS_MISSED = and_(events.c.via == SCAN, events.c.webhook_at.is_(None))
RANKED_AT = func.coalesce(events.c.occurred_at, events.c.received_at)

# what came by itself in a window, to be compared with what was listed
partial("events_occurred", events.c.source, events.c.occurred_at, where=CAME_BY_WEBHOOK)
# whose webhook never came
partial("events_missed", events.c.source, events.c.seq, where=IS_MISSED)
# of paused sources
partial("events_held", events.c.source, events.c.seq, where=IS_HELD)
# the newest event of a subject
partial("events_subject", events.c.source, events.c.subject, RANKED_AT, events.c.id, where=IS_FREE)
# as events_occurred, of those that do not say when they occurred
partial("events_undated", events.c.source, events.c.received_at, where=IS_UNDATED)

# apart from events, so that scans do not read past a million bodies
event_bodies = Table(
    "event_bodies",
    metadata,
    Column("event", Big, ForeignKey("events.seq", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("headers", JsonText, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# one row for each scan job that has found the event in its list: written once, however often it is listed
listings = Table(
    "listings",
    metadata,
    Column("event", Big, ForeignKey("events.seq", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("job", Text, primary_key=True),
    Column("at", UtcInstant, nullable=False),
    sqlite_with_rowid=False,
)

# up to when the ids of a source's events may be forgotten: the newest that was deleted was received then
forgotten = Table(
    "forgotten",
    metadata,
    Column("source", Text, primary_key=True),
    Column("until", UtcInstant, nullable=False),
)

rejects = Table(
    "rejects",
    metadata,
    Column("seq", Big, primary_key=True),
    Column("source", Text, nullable=False),
    Column("at", UtcInstant, nullable=False),
    Column("reason", Text, nullable=False),
    Column("why", FreeText, nullable=False),
    Column("headers", JsonText, nullable=False),
    Column("query", FreeText, nullable=False),
    Column("accepted_at", UtcInstant),
    Column("body", LargeBinary, nullable=False),
    # older ones of its source and reason that were let go, and are told of by no older row
    Column("dropped", Big, nullable=False, server_default="0"),
    # the newest of a source
    Index("rejects_source", "source", "seq"),
    # retention
    Index("rejects_at", "source", "at"),
    sqlite_autoincrement=True,
)
