"""How long runs and their attempts were at work."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for table in ("runs", "attempts"):
        op.add_column(table, sa.Column("took", sa.Float()))
