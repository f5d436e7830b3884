"""PostgreSQL through psycopg: bounded waits everywhere, nothing that a transaction pooler would break."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, func, literal, select, table, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from scheduler.core.errors import DatabaseAway, StartError, Unavailable
from scheduler.core.queries import COUNTED
from scheduler.store.bounded import BoundedConnection, LastAnswer
from scheduler.store.dialects.base import PATIENCE, close_all
from scheduler.store.reconnect import Reconnect

_MIGRATION_LOCK = 0x7363686564  # any number that all releases share

_LIMITS = {
    "statement_timeout": PATIENCE,
    "lock_timeout": PATIENCE,
    "idle_in_transaction_session_timeout": PATIENCE,
    # Whoever stops in the midst of an answer that fills the network's buffers would keep its locks for ever. The kernel
    # looks only when it tries again to send, so it takes up to a second longer.
    "tcp_user_timeout": PATIENCE / 2,
}
_WAITS = "; ".join(f"SET LOCAL {name} = {limit // timedelta(milliseconds=1)}" for name, limit in _LIMITS.items())

_OPENING = "opening"
"""What an option of a connection is named that says how its transactions begin: one statement where the driver would
make two or three, each of which the server must be asked for. None: without a transaction, each statement by itself."""
_BEGAN = "began"
"""What a connection is told by the last statement of `_WRITING`."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_WRITING = f"{_BEGIN}; {_WAITS}; SELECT clock_timestamp(), pg_backend_pid()"
_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_WAITS}"
ALONE = {_OPENING: None}

OFTEN = 5
"""Times that a writing transaction's statement is carried out on a connection before the server keeps it prepared: to
read and to plan it takes longer than its work. (From a request to its child: 9.8 ms without, 7.7 ms with it.)"""


class PostgresDatabase:
    """A database server. Connects when first used; StartError for a URL that cannot be read."""

    kind = "postgresql"

    def __init__(self, url: str, *, pool_size: int = 8) -> None:
        try:
            parsed = make_url(url).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError) as error:
            # the URL itself may hold a password
            raise StartError(
                "the database URL cannot be read", hint="write postgresql://user:password@host:port/name"
            ) from error
        self._url: URL = parsed
        self.engine: Engine = create_engine(
            parsed,
            pool_size=pool_size,
            pool_use_lifo=True,  # The backend that worked last works fastest: a request took 10.5 ms, in turn 13.5 ms.
            max_overflow=pool_size,
            pool_timeout=PATIENCE.total_seconds(),
            isolation_level="AUTOCOMMIT",  # The driver begins nothing.
            connect_args={
                "connect_timeout": 5,
                "application_name": "schedulerd",
                "cursor_factory": LastAnswer,
                "prepare_threshold": None,  # Before it is known who answers: `_begin`.
                "keepalives": 1,
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 10_000,
            },
        )
        self._reconnect: Reconnect[BoundedConnection] = Reconnect()
        event.listen(self.engine, "do_connect", self._connect)
        self._prepares = True
        event.listen(self.engine, "begin", self._begin)
        event.listen(self.engine, "handle_error", self._prepare_anew)

    def _connect(
        self, _dialect: object, _record: object, args: Sequence[Any], options: dict[str, Any]
    ) -> BoundedConnection:
        return self._reconnect.connected(lambda: BoundedConnection.connect(*args, **options))

    def _begin(self, connection: Connection) -> None:
        """What is prepared outlives the transaction, and a pooler may give each to another server process, where under
        its name there is nothing, or a stranger's statement. So whoever answers has to be the one who was connected
        to."""
        driver = driver_of(connection)
        driver.prepare_threshold = None
        opening = connection.get_execution_options().get(_OPENING, _BEGIN)
        if opening is None:
            return
        told = connection.exec_driver_sql(opening)
        if told.returns_rows:
            connection.info[_BEGAN], process = told.one()
            known = self._prepares and process == driver.info.backend_pid
            driver.prepare_threshold = OFTEN if known else None

    def _prepare_anew(self, context: ExceptionContext) -> None:
        """On new connections; nothing any more where it was not ours alone. Where nothing is prepared, the statement
        itself is wrong."""
        state = getattr(context.original_exception, "sqlstate", None)
        if state not in _SPOILT or context.connection is None:
            return
        if driver_of(context.connection).prepare_threshold is not None:
            context.is_disconnect = True
            self._prepares = self._prepares and state == _ALTERED

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._transaction(_WRITING) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._transaction(_READING) as connection:
            yield connection

    @contextmanager
    def _transaction(self, opening: str) -> Iterator[Connection]:
        with self.engine.connect() as plain:
            connection = plain.execution_options(**{_OPENING: opening})
            with connection.begin():
                yield connection

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        with self.engine.connect() as connection, _waiting_for_ever(connection), connection.begin():
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            yield connection

    def now(self) -> datetime:
        with self.engine.connect() as plain:
            connection = plain.execution_options(**ALONE)
            instant: datetime = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
        return instant.astimezone(UTC)

    def began(self, connection: Connection) -> datetime:
        instant: datetime = connection.info[_BEGAN]
        return instant.astimezone(UTC)

    def mark(self) -> None:
        return None

    def fault(self, error: BaseException) -> Unavailable | None:
        if isinstance(error, PoolTimeout):
            return DatabaseAway(f"database {self.place()}: all connections of this daemon are in use")
        original = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(original, psycopg.Error):
            return None
        state = original.sqlstate or ""
        if state in _SPOILT and not (isinstance(error, DBAPIError) and error.connection_invalidated):
            return None
        for prefix, (reason, hint) in _FAULTS.items():
            if state.startswith(prefix):
                return DatabaseAway(f"database {self.place()}: {reason}", hint=hint)
        if isinstance(original, psycopg.OperationalError | psycopg.InterfaceError):
            return DatabaseAway(
                f"database {self.place()}: {_first_line(original)}",
                hint="the daemon goes on by itself when the server answers again",
            )
        return None

    def mistake(self, error: BaseException) -> StartError | None:
        """A wrong address says so only in text: the driver has no code for a connection that was never made. A server
        that speaks another language than English is waited for, and its words are in the log."""
        original = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(original, psycopg.OperationalError | psycopg.ProgrammingError):
            return None
        text = str(original)
        for pattern, hint in _MISTAKES:
            if re.search(pattern, text):
                line = next(line for line in text.splitlines() if re.search(pattern, line))
                return StartError(f"database {self.place()}: {line.strip()}", hint=hint)
        return None

    def place(self) -> str:
        return self._url.set(drivername="postgresql").render_as_string(hide_password=True)

    def look(self) -> str:
        address = self._url.set(drivername="postgresql")._replace(password=None)
        return shlex.join(["pg_isready", "-d", address.render_as_string()])

    def measure(self, connection: Connection, tables: Mapping[str, str]) -> tuple[int, dict[str, int]]:
        size = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
        return size, {name: _rows(connection, name) for name in tables}

    def close(self) -> None:
        close_all(self.engine)


def driver_of(connection: Connection) -> BoundedConnection:
    """The connection as the driver knows it."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, BoundedConnection)
    return driver


_ALTERED = "0A000"
"""A table's columns have other types than when the statement was prepared."""
_SPOILT = (_ALTERED, "26000", "42P05")
"""That; and what was prepared is gone; and there is something of this name: others have used this server process."""

_FAULTS: Mapping[str, tuple[str, str]] = {
    "53100": ("the server's disk is full", "free some space there; nothing was written"),
    "53300": ("the server has no connection left", "raise max_connections, or put a pooler before it"),
    "55P03": ("a row is locked by somebody for too long", "look at pg_stat_activity for a transaction left open"),
    "57014": ("a statement took too long", "look at the server's load, and at pg_stat_activity for open locks"),
    "25P03": ("the transaction was idle for too long and was ended", "this machine was stopped or overloaded"),
    **dict.fromkeys(_SPOILT, ("what it had prepared is of no use any more", "it is tried again")),
    "40": ("the transaction collided with another one", "it is tried again"),
    "25006": ("the server is a read-only standby", "point the URL at the primary"),
    "57P": ("the server is shutting down or starting", "the daemon goes on by itself when it answers again"),
    "28": ("the server refuses this user or password", "check the database URL"),
    "3D000": ("there is no database of that name", "create it, or correct the URL"),
}


_MISTAKES: tuple[tuple[str, str], ...] = (
    (
        r"authentication failed|no password supplied|password authentication",
        "correct user and password in the database URL",
    ),
    (r'role ".*" does not exist', "create the role, or correct the user in the database URL"),
    (r'database ".*" does not exist', "create the database, or correct its name in the database URL"),
    (r"no pg_hba\.conf entry|pg_hba\.conf rejects", "let this machine in (pg_hba.conf), or correct the database URL"),
    (r"permission denied for database", "grant the user CONNECT on the database"),
    (
        r"permission denied for schema|no schema has been selected to create in",
        "let the user make tables there: ALTER DATABASE name OWNER TO user, or GRANT CREATE ON SCHEMA public TO user",
    ),
    (r"invalid (connection option|port number|sslmode value|URI)", "correct the database URL"),
    (r"server does not support SSL", "leave out sslmode, or switch SSL on at the server"),
)


@contextmanager
def _waiting_for_ever(connection: Connection) -> Iterator[None]:
    """Whoever migrates takes as long as it takes."""
    driver = driver_of(connection)
    driver.silence = None
    try:
        yield
    finally:
        del driver.silence


def _rows(connection: Connection, name: str) -> int:
    """Counted, up to a bound: what the planner believes is 0 or old until a table was analyzed."""
    bounded = select(literal(1)).select_from(table(name)).limit(COUNTED + 1).subquery()
    counted = int(connection.execute(select(func.count()).select_from(bounded)).scalar_one())
    if counted <= COUNTED:
        return counted
    believed = text("SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(:name)")
    return max(counted, int(connection.execute(believed, {"name": name}).scalar_one()))


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or ["the connection was lost"])[0]
