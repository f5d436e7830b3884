"""The release after this one: a copy of the tree with a raised version, a migration that adds, and newer schedules."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import distribution
from pathlib import Path

from scheduler.core.schedule import SCHEDULE_CODE
from scheduler.store.schema import HEAD

NEXT = "99.0.0"
REVISION = "9999"
TREE = Path(__file__).parents[2]

_MIGRATION = f'''
"""What the next release adds."""

import sqlalchemy as sa
from alembic import op

revision = "{REVISION}"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.create_table("novelties", sa.Column("id", sa.Text(), primary_key=True))
    for table in ("runs", "nodes", "jobs", "attempts"):
        op.add_column(table, sa.Column("novel", sa.Integer(), nullable=False, server_default="0"))
    op.create_index("runs_novel", "runs", ["novel", "seq"])
'''


def next_release(folder: Path) -> dict[str, str]:
    """Made in `folder`; the environment in which a daemon is of that release."""
    for package in ("scheduler", "compensators"):
        shutil.copytree(TREE / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    _replace(folder / "scheduler/store/schema.py", f'HEAD = "{HEAD}"', f'HEAD = "{REVISION}"')
    code = folder / "scheduler/core/schedule.py"
    _replace(code, f"SCHEDULE_CODE = {SCHEDULE_CODE}", f"SCHEDULE_CODE = {SCHEDULE_CODE + 1}")
    (folder / f"scheduler/store/migrations/versions/{REVISION}_novel.py").write_text(_MIGRATION)
    about = folder / f"schedulerd-{NEXT}.dist-info"
    about.mkdir()
    metadata = distribution("schedulerd").read_text("METADATA") or ""
    (about / "METADATA").write_text(re.sub(r"(?m)^Version: .*$", f"Version: {NEXT}", metadata))
    # Without the second one the working directory would come first.
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new))
