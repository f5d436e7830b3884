"""The first schema."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big, UtcInstant

revision = "0001"
down_revision = None


def _partial(name: str, table: str, columns: list[Any], where: str, *, unique: bool = False) -> None:
    """SQLite has no booleans: there a condition on one is written `= 1`."""
    on_sqlite = where.replace("enabled", "enabled = 1").replace("has_payload", "has_payload = 1")
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=sa.text(on_sqlite), postgresql_where=sa.text(where)
    )


def upgrade() -> None:
    op.create_table(
        "generations",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("created_at", UtcInstant(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("tzdata", sa.Text(), nullable=False),
        sa.Column("schedule_code", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_generations"),
    )
    op.create_index("generations_hash", "generations", ["hash", "id"])
    op.create_table(
        "installation",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_installation"),
    )
    op.create_table(
        "jobs",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_due_at", UtcInstant()),
        sa.Column("since", UtcInstant(), nullable=False),
        sa.Column("removed_at", UtcInstant()),
        sa.Column("pruned_before", UtcInstant()),
        sa.Column("deadline_at", UtcInstant()),
        sa.Column("last_success_at", UtcInstant()),
        sa.Column("settled_until", UtcInstant()),
        sa.Column("last_failure_at", UtcInstant()),
        sa.Column("consecutive_failures", sa.Integer(), nullable=False),
        sa.Column("alarm", sa.Text()),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("last_skip_id", Big),
        sa.Column("last_success_seq", Big),
        sa.Column("last_failure_seq", Big),
        sa.PrimaryKeyConstraint("name", name="pk_jobs"),
    )
    _partial("jobs_due", "jobs", ["next_due_at"], "enabled AND removed_at IS NULL")
    op.create_index("jobs_generation", "jobs", ["generation"])
    op.create_table(
        "locks",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fence", Big, nullable=False),
        sa.Column("run", sa.Text()),
        sa.PrimaryKeyConstraint("key", name="pk_locks"),
    )
    op.create_table(
        "nodes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("started_at", UtcInstant(), nullable=False),
        sa.Column("lease", sa.Float()),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("queues", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("beat", Big, nullable=False),
        sa.Column("beat_at", UtcInstant(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("clock_offset", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
    )
    op.create_table(
        "outputs",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("tail", sa.LargeBinary(), nullable=False),
        sa.Column("omitted", Big, nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("run", "attempt", name="pk_outputs"),
    )
    op.create_index("outputs_age", "outputs", ["job", "at"])
    op.create_table(
        "pauses",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("start", UtcInstant(), nullable=False),
        sa.Column("until", UtcInstant()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pauses"),
    )
    op.create_index("pauses_job", "pauses", ["job", "until"])
    op.create_table(
        "queues",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("concurrency", sa.Integer()),
        sa.Column("rate", sa.Float()),
        sa.Column("burst", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Float(), nullable=False),
        sa.Column("refilled_at", UtcInstant(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_queues"),
    )
    op.create_table(
        "runs",
        sa.Column("seq", Big, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", UtcInstant(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("lock", sa.Text()),
        sa.Column("scheduled_for", UtcInstant()),
        sa.Column("not_before", UtcInstant()),
        sa.Column("waits_for", sa.Text()),
        sa.Column("has_payload", sa.Boolean(), nullable=False),
        sa.Column("retry_of", sa.Text()),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("node", sa.Text()),
        sa.Column("fence", Big, nullable=False),
        sa.Column("started_at", UtcInstant()),
        sa.Column("finished_at", UtcInstant()),
        sa.Column("cancel", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("signal", sa.Integer()),
        sa.Column("progress", sa.Float()),
        sa.Column("message", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.Column("checkpoint", sa.Text()),
        sa.Column("discarded_at", UtcInstant()),
        sa.PrimaryKeyConstraint("seq", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
        sa.UniqueConstraint("job", "key", name="uq_runs_job_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("runs_job", "runs", ["job", "seq"])
    op.create_index("runs_occurrence", "runs", ["job", "scheduled_for"])
    _partial("runs_started", "runs", ["job", "started_at"], "started_at IS NOT NULL")
    _partial("runs_finished", "runs", ["job", "finished_at"], "finished_at IS NOT NULL")
    _partial("runs_failed", "runs", ["seq"], "status = 'FAILED'")
    _partial("runs_retry_of", "runs", ["retry_of"], "retry_of IS NOT NULL")
    _partial("runs_dead_letters", "runs", ["job", "seq"], "status = 'FAILED' AND has_payload AND discarded_at IS NULL")
    _partial("runs_pending", "runs", ["job", "scheduled_for", "seq"], "status = 'PENDING'")
    _partial(
        "runs_ready", "runs", ["queue", sa.text("priority DESC"), "seq"], "status = 'PENDING' AND waits_for IS NULL"
    )
    _partial("runs_waiting_lock", "runs", ["lock", "seq"], "status = 'PENDING' AND waits_for = 'lock'")
    _partial("runs_waiting_time", "runs", ["not_before"], "status = 'PENDING' AND waits_for = 'time'")
    _partial("runs_waiting_pause", "runs", ["job", "seq"], "status = 'PENDING' AND waits_for = 'pause'")
    _partial("runs_front", "runs", ["lock"], "status = 'PENDING' AND waits_for IS NULL AND lock IS NOT NULL")
    _partial("runs_running_queue", "runs", ["queue"], "status = 'RUNNING'")
    _partial("runs_running_node", "runs", ["node"], "status = 'RUNNING'")
    _partial("runs_running_job", "runs", ["job", "seq"], "status = 'RUNNING'")
    _partial("runs_lock_holder", "runs", ["lock"], "status = 'RUNNING'", unique=True)
    op.create_table(
        "schedule_versions",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("valid_from", UtcInstant(), nullable=False),
        sa.Column("valid_to", UtcInstant()),
        sa.PrimaryKeyConstraint("id", name="pk_schedule_versions"),
    )
    op.create_index("schedule_versions_job", "schedule_versions", ["job", "valid_from"])
    op.create_table(
        "skips",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("first", UtcInstant(), nullable=False),
        sa.Column("last", UtcInstant(), nullable=False),
        sa.Column("count", Big, nullable=False),
        sa.Column("blocked_by", sa.Text()),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_skips"),
        sqlite_autoincrement=True,
    )
    op.create_index("skips_job", "skips", ["job", "id"])
    op.create_index("skips_last", "skips", ["job", "last"])
    op.create_table(
        "summaries",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("completed", Big, nullable=False),
        sa.Column("failed", Big, nullable=False),
        sa.Column("canceled", Big, nullable=False),
        sa.Column("skipped", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("job", "day", name="pk_summaries"),
    )
    op.create_table(
        "attempts",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("fence", Big, nullable=False),
        sa.Column("started_at", UtcInstant(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("finished_at", UtcInstant()),
        sa.Column("outcome", sa.Text()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("signal", sa.Integer()),
        sa.Column("error", sa.Text()),
        sa.Column("left", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_attempts_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "number", name="pk_attempts"),
    )
    op.create_table(
        "payloads",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], name="fk_payloads_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", name="pk_payloads"),
    )
