"""How a node hears of what others did, and why it stands aside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("nodes", sa.Column("hints", sa.Text()))
    op.add_column("nodes", sa.Column("aside", sa.Text()))
