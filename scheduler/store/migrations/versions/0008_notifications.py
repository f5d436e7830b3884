"""What people are told, and the channels by which they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big, UtcInstant

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "notifications",
        sa.Column("id", Big, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("run", sa.Text()),
        sa.Column("since", UtcInstant(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("created_at", UtcInstant(), nullable=False),
        sa.Column("fate", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", UtcInstant(), nullable=False),
        sa.Column("settled_at", UtcInstant()),
        sa.Column("error", sa.Text()),
        sa.Column("together", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint("channel", "key", name="uq_notifications_channel_key"),
    )
    for name, columns, where in (
        ("notifications_waiting", ["channel", "next_at"], "fate = 'waiting'"),
        ("notifications_settled", ["settled_at"], "settled_at IS NOT NULL"),
    ):
        condition = sa.text(where)
        op.create_index(name, "notifications", columns, sqlite_where=condition, postgresql_where=condition)
    op.create_table(
        "channels",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("held_by", sa.Text()),
        sa.Column("held_until", UtcInstant()),
        sa.Column("messages", sa.Float(), nullable=False),
        sa.Column("paced_at", UtcInstant()),
        sa.Column("not_before", UtcInstant()),
        sa.Column("failing_since", UtcInstant()),
        sa.Column("error", sa.Text()),
        sa.Column("answered_at", UtcInstant()),
        sa.PrimaryKeyConstraint("name", name="pk_channels"),
    )
