"""Pings that a dead man's switch outside has yet to hear."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big, UtcInstant

revision = "0010"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "outgoing_pings",
        sa.Column("seq", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("signal", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("created_at", UtcInstant(), nullable=False),
        sa.Column("not_before", UtcInstant(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_outgoing_pings"),
        sqlite_autoincrement=True,
    )
    op.create_index("outgoing_pings_job", "outgoing_pings", ["job", "seq"])
