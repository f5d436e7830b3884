"""What the inbox has forgotten, and of which clock a scan knew; indexes that also serve events without a time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import UtcInstant

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "forgotten",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("until", UtcInstant(), nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_forgotten"),
    )
    op.add_column("scan_states", sa.Column("set_back_at", UtcInstant()))
    op.create_index("rejects_at", "rejects", ["source", "at"])
    op.drop_index("events_subject", "events")
    op.create_index(
        "events_subject",
        "events",
        ["source", "subject", sa.text("coalesce(occurred_at, received_at)"), "id"],
        sqlite_where=sa.text("held IS 0"),
        postgresql_where=sa.text("held IS false"),
    )
    undated = sa.text("occurred_at IS NULL")
    op.create_index(
        "events_undated", "events", ["source", "received_at"], sqlite_where=undated, postgresql_where=undated
    )
