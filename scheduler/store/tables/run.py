"""Runs: the runs themselves with the conditions that queries and indexes share, what they carry, and what they hold."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, and_

from scheduler.store.tables.base import metadata, partial, word
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

PENDING = word("PENDING")
RUNNING = word("RUNNING")
FAILED = word("FAILED")
FOR_TIME = word("time")
FOR_LOCK = word("lock")
FOR_PAUSE = word("pause")

runs = Table(
    "runs",
    metadata,
    Column("seq", Big, primary_key=True),
    Column("id", Text, nullable=False),
    Column("job", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", UtcInstant, nullable=False),
    Column("queue", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("lost", Integer, nullable=False),
    Column("reason", Text),
    Column("lock", Text),
    Column("scheduled_for", UtcInstant),
    Column("not_before", UtcInstant),
    Column("waits_for", Text),
    Column("has_payload", Boolean, nullable=False),
    Column("retry_of", Text),
    Column("note", FreeText, nullable=False),
    Column("author", FreeText, nullable=False),
    Column("node", Text),
    Column("fence", Big, nullable=False),
    Column("started_at", UtcInstant),
    Column("finished_at", UtcInstant),
    Column("cancel", FreeText),
    Column("error", FreeText),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("progress", Float),
    Column("message", FreeText),
    Column("result", JsonText),
    Column("checkpoint", JsonText),
    Column("discarded_at", UtcInstant),
    Column("took", Float),
    # the `seq` of the event that it is about; no foreign key: the run may outlive it
    Column("event", Big),
    Column("rank", Big),
    # the traceparent of the request that asked for it
    Column("trace", Text),
    UniqueConstraint("id"),
    # the identity of an occurrence, an event, a request: a second insert changes nothing
    UniqueConstraint("job", "key"),
    # a job's history, newest first
    Index("runs_job", "job", "seq"),
    # numbers of rows are never given twice: paging cursors and "oldest first" rely on it
    sqlite_autoincrement=True,
)

READY = and_(runs.c.status == PENDING, runs.c.waits_for.is_(None))
WAITS_LOCK = and_(runs.c.status == PENDING, runs.c.waits_for == FOR_LOCK)
WAITS_TIME = and_(runs.c.status == PENDING, runs.c.waits_for == FOR_TIME)
WAITS_PAUSE = and_(runs.c.status == PENDING, runs.c.waits_for == FOR_PAUSE)
IN_LINE = and_(READY, runs.c.lock.is_not(None))
IS_PENDING = runs.c.status == PENDING
IS_RUNNING = runs.c.status == RUNNING
PENDING_OCCURRENCE = and_(IS_PENDING, runs.c.scheduled_for.is_not(None))
PENDING_OTHER = and_(IS_PENDING, runs.c.scheduled_for.is_(None))
IS_ORDERED = and_(IS_PENDING, runs.c.rank.is_not(None))
DEAD_LETTER = and_(runs.c.status == FAILED, runs.c.has_payload, runs.c.discarded_at.is_(None))

# The order counts: between indexes that look equally good to it, SQLite takes the one that was made last. So the small
# ones come after the large ones.

# the audit's view: instants that have a run
Index("runs_occurrence", runs.c.job, runs.c.scheduled_for)
# a job's run that started last, past any number of waiting ones
partial("runs_started", runs.c.job, runs.c.started_at, where=runs.c.started_at.is_not(None))
# retention, and a job's run that ended last
partial("runs_finished", runs.c.job, runs.c.finished_at, where=runs.c.finished_at.is_not(None))
# failures among millions of completed runs
partial("runs_failed", runs.c.seq, where=runs.c.status == FAILED)
# whose retry is it: for the page of a run
partial("runs_retry_of", runs.c.retry_of, where=runs.c.retry_of.is_not(None))
partial("runs_dead_letters", runs.c.job, runs.c.seq, where=DEAD_LETTER)
# waiting runs of a job, as its policies ask for them: occurrences apart from the rest
partial("runs_pending", runs.c.job, runs.c.scheduled_for, runs.c.seq, where=IS_PENDING)
# the candidates of a claim, in the order in which they are claimed, whatever else waits
partial("runs_ready", runs.c.queue, runs.c.priority.desc(), runs.c.seq, where=READY)
# the oldest waiter of a lock, and the skip scan over the locks that are waited for
partial("runs_waiting_lock", runs.c.lock, runs.c.seq, where=WAITS_LOCK)
# retries whose time has come
partial("runs_waiting_time", runs.c.not_before, where=WAITS_TIME)
# which jobs have runs that wait for the end of a pause
partial("runs_waiting_pause", runs.c.job, runs.c.seq, where=WAITS_PAUSE)
# how many run in this queue
partial("runs_running_queue", runs.c.queue, where=IS_RUNNING)
# what a node holds
partial("runs_running_node", runs.c.node, where=IS_RUNNING)
# what of a job is running
partial("runs_running_job", runs.c.job, runs.c.seq, where=IS_RUNNING)
# the backstop: no two runs of one lock, whatever the code does
partial("runs_lock_holder", runs.c.lock, where=IS_RUNNING, unique=True)
# is somebody before me in the line for this lock? With `seq`, without which a server that knows nothing about the table
# may look for one among all that are ready
partial("runs_front", runs.c.lock, runs.c.seq, where=IN_LINE)
# the runs of an event
partial("runs_event", runs.c.event, runs.c.job, where=runs.c.event.is_not(None))
# the line of a lock that has an order of its own, whatever its runs wait for
partial("runs_ordered", runs.c.lock, runs.c.rank, runs.c.key, where=IS_ORDERED)

# apart from runs, so that claiming and settling do not rewrite them
payloads = Table(
    "payloads",
    metadata,
    Column("run", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("payload", JsonText, nullable=False),
)

locks = Table(
    "locks",
    metadata,
    Column("key", Text, primary_key=True),
    Column("fence", Big, nullable=False),
    Column("run", Text),
)
