"""The seam between the store and a database."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from scheduler.core.errors import StartError, Unavailable

PATIENCE = timedelta(seconds=2)
"""How long a transaction waits for anything, and how long one statement may take."""


class Database(Protocol):
    kind: str
    engine: Engine

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection inside a transaction that may write; committed at the end, rolled back by an exception."""
        ...

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection inside a transaction that sees one state of the database and writes nothing."""
        ...

    def migrating(self) -> AbstractContextManager[Connection]:
        """A writing transaction that excludes every other one of this kind and has no time limit once it began."""
        ...

    def now(self) -> datetime: ...

    def began(self, connection: Connection) -> datetime:
        """The time when the writing transaction on it began: `now` without asking once more."""
        ...

    def mark(self) -> str | None:
        """The same as before if and only if nobody has committed anything since. None: it is to be asked for within a
        transaction (store/look.py)."""
        ...

    def fault(self, error: BaseException) -> Unavailable | None:
        """What the driver's error means, in words; None if it is nobody's fault but the code's."""
        ...

    def mistake(self, error: BaseException) -> StartError | None:
        """What the driver's error means when no waiting would help, in words; None if it may go away by itself."""
        ...

    def place(self) -> str:
        """Where it is, without a password."""
        ...

    def look(self) -> str:
        """What to type on the daemon's machine to see whether it is there."""
        ...

    def measure(self, connection: Connection, tables: Mapping[str, str]) -> tuple[int, dict[str, int]]:
        """Size in bytes, and the number of rows per table."""
        ...

    def close(self) -> None:
        """Closes the connections: those that are in use, as they come back."""
        ...


def close_all(engine: Engine) -> None:
    """By itself `dispose` closes only what nobody uses; the rest would be left to the garbage collector."""
    event.listen(engine.pool, "checkin", _close)
    engine.dispose()


def _close(_connection: object, entry: ConnectionPoolEntry) -> None:
    entry.close()
