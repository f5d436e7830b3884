"""The state that a job is kept in, and every change of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big, UtcInstant

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("state", sa.Text(), nullable=False, server_default="up"))
    op.add_column("jobs", sa.Column("state_since", UtcInstant()))
    where = sa.text("deadline_at IS NOT NULL AND state != 'missed'")
    op.create_index("jobs_deadline", "jobs", ["deadline_at"], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "flips",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.Column("seen_at", UtcInstant(), nullable=False),
        sa.Column("old", sa.Text(), nullable=False),
        sa.Column("new", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("run", sa.Text()),
        sa.Column("was_since", UtcInstant()),
        sa.PrimaryKeyConstraint("id", name="pk_flips"),
        sqlite_autoincrement=True,
    )
    op.create_index("flips_job", "flips", ["job", "id"])
    op.create_index("flips_seen", "flips", ["seen_at"])
