"""Who may come in over TCP; which misses somebody knows of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big, UtcInstant

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", UtcInstant(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("expires_at", UtcInstant()),
        sa.Column("revoked_at", UtcInstant()),
        sa.Column("used_at", UtcInstant()),
        sa.Column("session", sa.Boolean(), nullable=False),
        sa.Column("parent", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
    )
    op.create_table(
        "acks",
        sa.Column("id", Big, nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("first", UtcInstant(), nullable=False),
        sa.Column("last", UtcInstant(), nullable=False),
        sa.Column("at", UtcInstant(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_acks"),
    )
    op.create_index("acks_job", "acks", ["job", "last"])
