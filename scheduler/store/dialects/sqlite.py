"""SQLite: one file, one writer at a time, every commit on disk before it is told."""

from __future__ import annotations

import os
import shlex
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, select, table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from scheduler.core.errors import DatabaseAway, StartError, Unavailable
from scheduler.store.dialects.base import PATIENCE, close_all

_READERS = 8


class Turnstile:
    """A lock that is given in the order of asking, so that no loop starves another."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line: deque[threading.Lock] = deque()
        self._owner: int | None = None

    def enter(self, timeout: float) -> bool:
        """False if it was not free within `timeout` seconds. RuntimeError if this thread holds it already."""
        ticket = threading.Lock()
        with self._guard:
            if self._owner == threading.get_ident():
                raise RuntimeError("a writing transaction inside another one of the same thread")
            if self._owner is None:
                self._owner = threading.get_ident()
                return True
            ticket.acquire()
            self._line.append(ticket)
        got = ticket.acquire(timeout=timeout)
        with self._guard:
            if not got and ticket in self._line:
                self._line.remove(ticket)
                return False
            self._owner = threading.get_ident()
            return True

    def leave(self) -> None:
        with self._guard:
            if self._line:
                # still taken, so that nobody slips in between
                self._owner = -1
                self._line.popleft().release()
            else:
                self._owner = None


class SqliteDatabase:
    """A database file. Raises StartError if it cannot be opened or created."""

    kind = "sqlite"

    def __init__(self, path: Path, *, patience: timedelta = PATIENCE) -> None:
        self._path = path.absolute()
        self._patience = patience.total_seconds()
        self._turnstile = Turnstile()
        self._identity = self._create()
        self._marking = threading.Lock()
        self._marker: sqlite3.Connection | None = None
        self.engine: Engine = create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=_READERS,
            max_overflow=_READERS,
            pool_timeout=self._patience,
        )
        event.listen(self.engine, "begin", _begin)

    def _create(self) -> tuple[int, int]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # what jobs print and carry is nobody else's business
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            status = self._path.stat()
        except OSError as error:
            raise StartError(
                f"{self._path}: {error.strerror}", hint="the database file must be writable; see SCHEDULER_STATE_DIR"
            ) from error
        return status.st_dev, status.st_ino

    def _connect(self) -> sqlite3.Connection:
        self._check_file()
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-4000"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self) -> None:
        try:
            status = self._path.stat()
            gone = (status.st_dev, status.st_ino) != self._identity
        except OSError:
            gone = True
        if gone:
            raise DatabaseAway(
                f"database file {self._path} is gone: it was removed or replaced while the daemon runs",
                hint="put the same file back, or restart the daemon",
            )

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if not self._turnstile.enter(self._patience):
            raise DatabaseAway(f"database {self._path} is busy: other transactions of this daemon take too long")
        try:
            with self._transaction("BEGIN IMMEDIATE") as connection:
                yield connection
                # what goes into a file without a name would be lost without a word
                self._check_file()
        finally:
            self._turnstile.leave()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        self._check_file()
        with self.engine.connect() as connection:
            connection.info["begin"] = begin
            with connection.begin():
                yield connection

    def reading(self) -> Any:
        return self._transaction("BEGIN")

    migrating = writing

    def now(self) -> datetime:
        return datetime.now(UTC)

    def began(self, _connection: Connection) -> datetime:
        return self.now()

    def mark(self) -> str:
        """By a connection that never writes: the number is about what others have committed."""
        self._check_file()
        with self._marking:
            self._marker = self._marker or self._connect()
            return str(self._marker.execute("PRAGMA data_version").fetchone()[0])

    def fault(self, error: BaseException) -> Unavailable | None:
        if isinstance(error, PoolTimeout):
            return DatabaseAway(f"database {self._path} is busy: too many transactions of this daemon at once")
        if isinstance(error, sqlite3.Error):
            return self._meaning(error)
        if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error):
            return self._meaning(error.orig)
        return None

    def _meaning(self, error: sqlite3.Error) -> Unavailable | None:
        code = getattr(error, "sqlite_errorname", "")
        for prefix, (reason, hint) in _FAULTS.items():
            if code.startswith(prefix):
                return DatabaseAway(f"database {self._path}: {reason}", hint=hint)
        if isinstance(error, sqlite3.OperationalError) and not code.startswith("SQLITE_ERROR"):
            return DatabaseAway(f"database {self._path}: {error}")
        return None

    def mistake(self, error: BaseException) -> StartError | None:
        original = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(original, "sqlite_errorname", "")
        if not code.startswith(_HOPELESS):
            return None
        reason, hint = next(found for prefix, found in _FAULTS.items() if code.startswith(prefix))
        return StartError(f"database {self._path}: {reason}", hint=hint)

    def place(self) -> str:
        return str(self._path)

    def look(self) -> str:
        return shlex.join(["ls", "-li", str(self._path)])

    def measure(self, connection: Connection, tables: Mapping[str, str]) -> tuple[int, dict[str, int]]:
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        rows = {name: connection.execute(select(func.count()).select_from(table(name))).scalar_one() for name in tables}
        return size, rows

    def close(self) -> None:
        with self._marking:
            if self._marker is not None:
                self._marker.close()
                self._marker = None
        close_all(self.engine)


_FAULTS: Mapping[str, tuple[str, str]] = {
    "SQLITE_FULL": ("the disk is full", "free some space; nothing was written and the daemon goes on by itself"),
    "SQLITE_BUSY": ("it is locked by another program", "end the program that holds a transaction open in this file"),
    "SQLITE_LOCKED": ("it is locked by another program", "end the program that holds a transaction open in this file"),
    "SQLITE_READONLY": ("it cannot be written", "check owner, mode and mount of the file and of its directory"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "check owner and mode of the file and of its directory"),
    "SQLITE_PERM": ("it cannot be opened", "check owner and mode of the file and of its directory"),
    "SQLITE_IOERR": ("reading or writing the disk failed", "look at the kernel's log; the disk may be full or failing"),
    "SQLITE_CORRUPT": ("the file is damaged", "restore a backup"),
    "SQLITE_NOTADB": ("the file is not an SQLite database", "move it away, or name another file"),
}


_HOPELESS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_CORRUPT", "SQLITE_NOTADB")
"""At start: waiting does not help."""


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.info.get("begin", "BEGIN"))
