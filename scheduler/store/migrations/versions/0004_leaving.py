"""Since when a node that leaves plans nothing more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import UtcInstant

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("nodes", sa.Column("leaving_at", UtcInstant()))
