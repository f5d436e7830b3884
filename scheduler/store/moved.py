"""Ledgers that no daemon may use: one that is being filled by a copy, and one that was copied elsewhere."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from scheduler.core.errors import StartError
from scheduler.store import tables as t
from scheduler.store.dialects.base import Database

COPYING = "copying from"
"""Under this name a target remembers, until it is complete, where it is being filled from."""
MOVED = "moved to"
"""Under this name a ledger that was copied remembers whereto."""


def refuse_moved(database: Database, *, after_restore: bool) -> None:
    """StartError for both. To go back to a ledger that was copied elsewhere is to go back in time: it takes
    `after_restore`, and then it is forgotten that it was copied."""
    with database.reading() as connection:
        source, target = named_value(connection, COPYING), named_value(connection, MOVED)
    if source is not None:
        raise StartError(
            f"{database.place()} is an unfinished copy of {source}",
            hint="run `schedctl db copy` again: it goes on where it was interrupted",
        )
    if target is None:
        return
    if not after_restore:
        raise StartError(
            f"the ledger in {database.place()} was moved to {target}",
            hint="set SCHEDULER_DATABASE_URL to that; to go back to this one, start it once with --after-restore",
        )
    with database.writing() as connection:
        connection.execute(delete(t.installation).where(t.installation.c.key == MOVED))


def named_value(connection: Connection, key: str) -> str | None:
    found: str | None = connection.execute(select(t.installation.c.value).where(t.installation.c.key == key)).scalar()
    return found
