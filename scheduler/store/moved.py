"""Ledgers that no daemon may use: one that is being filled by a copy, and one that was copied elsewhere."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from scheduler.core.errors import StartError
from scheduler.store import tables as t
from scheduler.store.dialects.base import Database

COPYING = "copying from"
"""Under this name a target remembers, until it is complete, where it is being filled from."""
COPY = "copy"
"""Under this name both sides of a copy remember which one it is. A source forgets it when a daemon opens it."""
SEEN_NODES = "copied nodes"
"""Under this name a target remembers how the source's nodes stood when the copy began."""
MOVED = "moved to"
"""Under this name a ledger that was copied remembers whereto."""
OF_A_COPY = (COPYING, COPY, SEEN_NODES, MOVED)
"""What one side says of itself, and what is not copied."""


def refuse_moved(database: Database, *, after_restore: bool) -> None:
    """StartError for both. To go back to a ledger that was copied elsewhere is to go back in time: it takes
    `after_restore`, and then it is forgotten that it was copied. A copy that was begun and not finished no longer holds
    the beginning of what a daemon goes on with: that is forgotten, too."""
    with database.reading() as connection:
        source, target = named_value(connection, COPYING), named_value(connection, MOVED)
        begun = named_value(connection, COPY)
    if source is not None:
        raise StartError(
            f"{database.place()} is an unfinished copy of {source}",
            hint="run `schedctl db copy` again: it goes on where it was interrupted",
        )
    if target is not None and not after_restore:
        raise StartError(
            f"the ledger in {database.place()} was moved to {target}",
            hint="set SCHEDULER_DATABASE_URL to that; to go back to this one, start it once with --after-restore",
        )
    if target is not None or begun is not None:
        with database.writing() as connection:
            forget(connection, MOVED, COPY)


def refuse_moved_meanwhile(connection: Connection) -> None:
    """For a node that has just registered, and whose ledger may have gone elsewhere while it was stopped: StartError.
    Whoever marks a ledger as moved lets nobody register meanwhile."""
    target = named_value(connection, MOVED)
    if target is not None:
        raise StartError(
            f"the ledger was moved to {target} while this daemon was stopped",
            hint="set SCHEDULER_DATABASE_URL to that and start it again",
        )


def named_value(connection: Connection, key: str) -> str | None:
    found: str | None = connection.execute(select(t.installation.c.value).where(t.installation.c.key == key)).scalar()
    return found


def name_value(connection: Connection, key: str, value: str) -> None:
    forget(connection, key)
    connection.execute(insert(t.installation), {"key": key, "value": value})


def forget(connection: Connection, *keys: str) -> None:
    connection.execute(delete(t.installation).where(t.installation.c.key.in_(keys)))
