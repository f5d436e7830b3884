"""How many refused requests were dropped for newer ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from scheduler.store.types import Big

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("rejects", sa.Column("dropped", Big, nullable=False, server_default="0"))
