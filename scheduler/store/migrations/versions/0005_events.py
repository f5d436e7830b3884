"""Events that were told, scans for those that were not, and lines in an order of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big, UtcInstant

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _runs()
    _events()
    _rejects()
    _scans()


def _runs() -> None:
    op.add_column("runs", sa.Column("event", Big))
    op.add_column("runs", sa.Column("rank", Big))
    op.drop_index("runs_front", "runs")
    _partial("runs_front", "runs", ["lock", "seq"], "status = 'PENDING' AND waits_for IS NULL AND lock IS NOT NULL")
    _partial("runs_event", "runs", ["event", "job"], "event IS NOT NULL")
    _partial("runs_ordered", "runs", ["lock", "rank", "key"], "status = 'PENDING' AND rank IS NOT NULL")


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", Big, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("via", sa.Text(), nullable=False),
        sa.Column("received_at", UtcInstant(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("occurred_at", UtcInstant()),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("vouched_by", sa.Text(), nullable=False),
        sa.Column("found_by", sa.Text(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("webhook_at", UtcInstant()),
        sa.Column("duplicates", Big, nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.UniqueConstraint("source", "id", name="uq_events_source_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_source", "events", ["source", "seq"])
    op.create_index("events_received", "events", ["source", "received_at"])
    _partial("events_subject", "events", ["source", "subject", "occurred_at", "id"], "occurred_at IS NOT NULL")
    _partial("events_occurred", "events", ["source", "occurred_at"], "webhook_at IS NOT NULL")
    _partial("events_missed", "events", ["source", "seq"], "via = 'scan' AND webhook_at IS NULL")
    op.create_index(
        "events_held",
        "events",
        ["source", "seq"],
        sqlite_where=sa.text("held IS 1"),
        postgresql_where=sa.text("held IS true"),
    )
    op.create_table(
        "event_bodies",
        sa.Column("event", Big, nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["event"], ["events.seq"], name="fk_event_bodies_event", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("event", name="pk_event_bodies"),
    )
    op.create_table(
        "listings",
        sa.Column("event", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.ForeignKeyConstraint(["event"], ["events.seq"], name="fk_listings_event", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("event", "job", name="pk_listings"),
        sqlite_with_rowid=False,
    )


def _rejects() -> None:
    op.create_table(
        "rejects",
        sa.Column("seq", Big, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("accepted_at", UtcInstant()),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_rejects"),
        sqlite_autoincrement=True,
    )
    op.create_index("rejects_source", "rejects", ["source", "seq"])


def _scans() -> None:
    op.create_table(
        "scan_states",
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("watermark", UtcInstant()),
        sa.Column("window_start", UtcInstant()),
        sa.Column("window_end", UtcInstant()),
        sa.Column("cursor", sa.Text()),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("began_at", UtcInstant()),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("run", sa.Text()),
        sa.PrimaryKeyConstraint("job", name="pk_scan_states"),
    )
    op.create_table(
        "scan_reports",
        sa.Column("seq", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("window_start", UtcInstant(), nullable=False),
        sa.Column("window_end", UtcInstant(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("began_at", UtcInstant(), nullable=False),
        sa.Column("ended_at", UtcInstant(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("holes", sa.Text(), nullable=False),
        sa.Column("unlisted", Big, nullable=False),
        sa.Column("unlisted_ids", sa.Text(), nullable=False),
        sa.Column("lag", sa.Float()),
        sa.Column("dry_run", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_scan_reports"),
        sqlite_autoincrement=True,
    )
    op.create_index("scan_reports_job", "scan_reports", ["job", "seq"])
    op.create_table(
        "scan_holes",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("start", UtcInstant(), nullable=False),
        sa.Column("end", UtcInstant(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("found_at", UtcInstant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scan_holes"),
    )
    op.create_index("scan_holes_job", "scan_holes", ["job", "end"])
    op.create_table(
        "scan_asides",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("found_at", UtcInstant(), nullable=False),
        sa.Column("occurred_at", UtcInstant()),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scan_asides"),
        sa.UniqueConstraint("job", "digest", name="uq_scan_asides_job_digest"),
    )
    op.create_index("scan_asides_job", "scan_asides", ["job", "id"])
    op.create_index("scan_asides_source", "scan_asides", ["source", "id"])


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
