"""Jobs: where each stands, the schedules it had, what people said about it."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text, and_

from scheduler.core.canary import CANARY
from scheduler.store.tables.base import metadata, partial, word
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

jobs = Table(
    "jobs",
    metadata,
    Column("name", Text, primary_key=True),
    Column("generation", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("next_due_at", UtcInstant),
    Column("since", UtcInstant, nullable=False),
    Column("removed_at", UtcInstant),
    Column("pruned_before", UtcInstant),
    Column("deadline_at", UtcInstant),
    Column("last_success_at", UtcInstant),
    Column("settled_until", UtcInstant),
    Column("last_failure_at", UtcInstant),
    Column("consecutive_failures", Integer, nullable=False),
    Column("alarm", FreeText),
    Column("definition", JsonText, nullable=False),
    # the skip that the next one may extend; NULL as soon as an occurrence got a run
    Column("last_skip_id", Big),
    # runs that retention leaves alone
    Column("last_success_seq", Big),
    Column("last_failure_seq", Big),
    Column("state", Text, nullable=False, server_default="up"),
    Column("state_since", UtcInstant),
)
IS_PRESENT = and_(jobs.c.removed_at.is_(None), jobs.c.name != word(CANARY))
"""Jobs that people look at."""
NOT_MISSED = jobs.c.state != word("missed")
# due() and next_due(), once a second for ever
partial("jobs_due", jobs.c.next_due_at, where=and_(jobs.c.enabled, jobs.c.removed_at.is_(None)))
# claims leave jobs that changed after what the node has loaded: almost always none
Index("jobs_generation", jobs.c.generation)
# whose deadline passes next, once a second for ever
partial("jobs_deadline", jobs.c.deadline_at, where=and_(jobs.c.deadline_at.is_not(None), NOT_MISSED))

schedule_versions = Table(
    "schedule_versions",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("spec", JsonText, nullable=False),
    Column("valid_from", UtcInstant, nullable=False),
    Column("valid_to", UtcInstant),
    # versions() and close_versions()
    Index("schedule_versions_job", "job", "valid_from"),
)

pauses = Table(
    "pauses",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("start", UtcInstant, nullable=False),
    Column("until", UtcInstant),
    Column("reason", FreeText, nullable=False),
    Column("author", FreeText, nullable=False),
    # which of these jobs are paused now: every claim asks
    Index("pauses_job", "job", "until"),
)

acks = Table(
    "acks",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("first", UtcInstant, nullable=False),
    Column("last", UtcInstant, nullable=False),
    Column("at", UtcInstant, nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("author", FreeText, nullable=False),
    # excused instants of a job after its last success
    Index("acks_job", "job", "last"),
)

flips = Table(
    "flips",
    metadata,
    Column("id", Big, primary_key=True),
    Column("job", Text, nullable=False),
    Column("at", UtcInstant, nullable=False),
    Column("seen_at", UtcInstant, nullable=False),
    Column("old", Text, nullable=False),
    Column("new", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("run", Text),
    Column("was_since", UtcInstant),
    # those of a job, newest first
    Index("flips_job", "job", "id"),
    # what is too old to be kept
    Index("flips_seen", "seen_at"),
    sqlite_autoincrement=True,
)
