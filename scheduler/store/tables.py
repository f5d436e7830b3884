"""The schema as the code uses it; `migrations` makes it, a test compares the two on both databases.

Every partial index names its condition in literals: SQLite uses one only if the query repeats the condition so.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Date,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
)

from scheduler.store.types import Big, FreeText, JsonText, UtcInstant

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _word(text: str) -> ColumnElement[str]:
    return literal_column(f"'{text}'", Text)


PENDING = _word("PENDING")
RUNNING = _word("RUNNING")
FAILED = _word("FAILED")
FOR_TIME = _word("time")
FOR_LOCK = _word("lock")
FOR_PAUSE = _word("pause")

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
)

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
    # claims leave jobs that changed after what the node has loaded: almost always none
    Index("jobs_generation", "generation"),
)
# due() and next_due(), once a second for ever
Index(
    "jobs_due",
    jobs.c.next_due_at,
    sqlite_where=and_(jobs.c.enabled, jobs.c.removed_at.is_(None)),
    postgresql_where=and_(jobs.c.enabled, jobs.c.removed_at.is_(None)),
)

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
DEAD_LETTER = and_(runs.c.status == FAILED, runs.c.has_payload, runs.c.discarded_at.is_(None))


def _partial(name: str, *columns: ColumnElement[object], where: ColumnElement[bool], unique: bool = False) -> None:
    Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


# The order counts: between indexes that look equally good to it, SQLite takes the one that was made last. So the small
# ones come after the large ones.

# the audit's view: instants that have a run
Index("runs_occurrence", runs.c.job, runs.c.scheduled_for)
# a job's run that started last, past any number of waiting ones
_partial("runs_started", runs.c.job, runs.c.started_at, where=runs.c.started_at.is_not(None))
# retention, and a job's run that ended last
_partial("runs_finished", runs.c.job, runs.c.finished_at, where=runs.c.finished_at.is_not(None))
# failures among millions of completed runs
_partial("runs_failed", runs.c.seq, where=runs.c.status == FAILED)
# whose retry is it: for the page of a run
_partial("runs_retry_of", runs.c.retry_of, where=runs.c.retry_of.is_not(None))
_partial("runs_dead_letters", runs.c.job, runs.c.seq, where=DEAD_LETTER)
# waiting runs of a job, as its policies ask for them: occurrences apart from the rest
_partial("runs_pending", runs.c.job, runs.c.scheduled_for, runs.c.seq, where=IS_PENDING)
# the candidates of a claim, in the order in which they are claimed, whatever else waits
_partial("runs_ready", runs.c.queue, runs.c.priority.desc(), runs.c.seq, where=READY)
# the oldest waiter of a lock, and the skip scan over the locks that are waited for
_partial("runs_waiting_lock", runs.c.lock, runs.c.seq, where=WAITS_LOCK)
# retries whose time has come
_partial("runs_waiting_time", runs.c.not_before, where=WAITS_TIME)
# which jobs have runs that wait for the end of a pause
_partial("runs_waiting_pause", runs.c.job, runs.c.seq, where=WAITS_PAUSE)
# is somebody before me in the line for this lock?
_partial("runs_front", runs.c.lock, where=IN_LINE)
# how many run in this queue
_partial("runs_running_queue", runs.c.queue, where=IS_RUNNING)
# what a node holds
_partial("runs_running_node", runs.c.node, where=IS_RUNNING)
# what of a job is running
_partial("runs_running_job", runs.c.job, runs.c.seq, where=IS_RUNNING)
# the backstop: no two runs of one lock, whatever the code does
_partial("runs_lock_holder", runs.c.lock, where=IS_RUNNING, unique=True)

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
    # ranges that touch a period
    Index("skips_last", "job", "last"),
    # a job's history, newest first
    Index("skips_job", "job", "id"),
    sqlite_autoincrement=True,
)

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
