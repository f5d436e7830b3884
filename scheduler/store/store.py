"""The store: transactions on a database that is known to have the right schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from scheduler.core.errors import SchedulerError, StartError, Unavailable
from scheduler.core.hints import Ear, Heard, Said
from scheduler.core.look import Glance, Look
from scheduler.core.ports import Transaction, Writing
from scheduler.core.queries import DatabaseStatus
from scheduler.store import tables as t
from scheduler.store.dialects.base import Database
from scheduler.store.events import SqlEvents
from scheduler.store.generations import SqlGenerations
from scheduler.store.jobs import SqlJobs
from scheduler.store.ledger import SqlLedger
from scheduler.store.look import glance, look
from scheduler.store.moved import refuse_moved
from scheduler.store.nodes import SqlNodes
from scheduler.store.notifications import SqlNotifications
from scheduler.store.outgoing import SqlOutgoingPings
from scheduler.store.queries import SqlQueries
from scheduler.store.queues import SqlQueues
from scheduler.store.runs import SqlRuns
from scheduler.store.scans import SqlScans
from scheduler.store.schema import OLDEST_RELEASE_KEY, ensure_schema, revision_of
from scheduler.store.session import Session
from scheduler.store.tokens import SqlTokens


def _verbs(session: Session) -> _Verbs:
    return (
        SqlNodes(session),
        SqlGenerations(session),
        SqlJobs(session),
        SqlRuns(session),
        SqlQueues(session),
        SqlLedger(session),
        SqlTokens(session),
        SqlEvents(session),
        SqlScans(session),
        SqlNotifications(session),
        SqlOutgoingPings(session),
    )


_Verbs = tuple[
    SqlNodes,
    SqlGenerations,
    SqlJobs,
    SqlRuns,
    SqlQueues,
    SqlLedger,
    SqlTokens,
    SqlEvents,
    SqlScans,
    SqlNotifications,
    SqlOutgoingPings,
]


class SqlStore:
    """Safe to use from several threads. On SQLite a writing transaction inside another one of the same thread is a
    RuntimeError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.kind: str = database.kind

    @contextmanager
    def begin(self) -> Iterator[Writing]:
        """A writing transaction: committed at the end of the block, rolled back by an exception. Raises Unavailable
        when the database cannot be reached, is locked too long, is full or gone; then nothing was written (if the
        connection broke while it committed: or all of it)."""
        with self._inside(self._database.writing) as session:
            yield Writing(*_verbs(session), self._database.began(session.connection))

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A consistent, reading transaction."""
        with self._inside(self._database.reading) as session:
            yield Transaction(*_verbs(session))

    @contextmanager
    def queries(self) -> Iterator[SqlQueries]:
        """The read models for people, in one consistent transaction."""
        with self._inside(self._database.reading) as session:
            yield SqlQueries(session)

    @contextmanager
    def _inside(self, opened: Callable[[], AbstractContextManager[Connection]]) -> Iterator[Session]:
        with faults_told(self._database), opened() as connection:
            yield Session(connection, self.kind)

    def now(self) -> datetime:
        """The time that planning uses: the database's on PostgreSQL, this machine's on SQLite."""
        with faults_told(self._database):
            return self._database.now()

    def look(self, node: str, generation: int, last: Look | None = None) -> Look:
        """What there is to do for this node, which has loaded that generation: one statement. `last`: what it found
        before, with the same two; where nothing was written since, not even that statement may be needed."""
        with faults_told(self._database):
            mark = self._database.mark()
            now = None if mark is None else self._database.now()
        if now is not None and last is not None and last.mark == mark:
            return replace(last, now=now)
        with self._inside(self._database.reading) as session:
            return look(session, node, generation, now, mark)

    def glance(self, node: str) -> Glance:
        """What the worker of this node asks while there is work: one statement."""
        now = None if self.kind == "postgresql" else self.now()
        with self._inside(self._database.reading) as session:
            return glance(session, node, now)

    def db_status(self) -> DatabaseStatus:
        """Kind, place and what to look at, and what the database says of itself, if it answers."""
        try:
            return self._measured()
        except Unavailable as error:
            place, look = self._database.place(), self._database.look()
            return DatabaseStatus(self.kind, place, None, None, None, None, error.reason, error.hint, look)

    def _measured(self) -> DatabaseStatus:
        names = {table.name: table.name for table in t.metadata.sorted_tables}
        with self._inside(self._database.reading) as session:
            size, rows = self._database.measure(session.connection, names)
            return DatabaseStatus(
                kind=self.kind,
                url=self._database.place(),
                revision=revision_of(session.connection) or "",
                oldest_release=SqlGenerations(session).value(OLDEST_RELEASE_KEY) or "",
                size=size,
                rows=rows,
                look=self._database.look(),
            )

    def ear(self, said: Said, heard: Heard) -> Ear | None:
        """What carries hints between nodes, not yet started; None: there is one node (SQLite)."""
        if self.kind != "postgresql":
            return None
        from scheduler.store.dialects.postgresql import PostgresDatabase
        from scheduler.store.listen import PostgresEar

        assert isinstance(self._database, PostgresDatabase)
        return PostgresEar(self._database, said, heard)

    def let_go(self) -> None:
        """Of statements kept for the next time: each is kept with the values it had first, thousands of them where they
        do not travel as one text as on SQLite. To build one anew takes 0.2 to 1 ms."""
        if self.kind == "postgresql":
            self._database.engine.clear_compiled_cache()

    def close(self) -> None:
        self._database.close()


@contextmanager
def faults_told(database: Database) -> Iterator[None]:
    """Errors of the driver that are nobody's fault come out as Unavailable."""
    try:
        yield
    except SchedulerError:
        raise
    except Exception as error:
        fault = database.fault(error)
        if fault is None:
            raise
        raise fault from error


def open_database(url: str, state_dir: Path) -> Database:
    """`postgresql://…`; `sqlite:////absolute/path`; empty: `scheduler.db` in the state directory."""
    file = sqlite_file(url, state_dir)
    if file is not None:
        from scheduler.store.dialects.sqlite import SqliteDatabase

        return SqliteDatabase(file)
    scheme = _scheme(url)
    if scheme in ("postgresql", "postgres"):
        from scheduler.store.dialects.postgresql import PostgresDatabase

        return PostgresDatabase(url)
    raise StartError(
        f"SCHEDULER_DATABASE_URL: there is no database {scheme!r}",
        hint="use postgresql://user@host/name, sqlite:////path/to/file, or leave it out for a file of its own",
    )


def sqlite_file(url: str, state_dir: Path) -> Path | None:
    """The file of a SQLite database, None for other databases."""
    if url == "":
        return state_dir / "scheduler.db"
    return Path(url.partition(":///")[2]) if _scheme(url) == "sqlite" else None


def _scheme(url: str) -> str:
    return url.partition(":")[0].partition("+")[0]


def open_store(url: str, state_dir: Path, *, release: str, after_restore: bool = False) -> SqlStore:
    """A store whose schema is up to date: made or migrated now if need be, by one daemon at a time.

    Raises Unavailable when the database does not answer, StartError when it can never work: a file that cannot be
    written, an unknown URL, a user that is refused, a schema that needs a newer release than `release`, a ledger that
    was moved elsewhere (but for `after_restore`) or has not arrived yet."""
    database = open_database(url, state_dir)
    try:
        with faults_told(database):
            prepare(database, release)
            refuse_moved(database, after_restore=after_restore)
    except SchedulerError:
        database.close()
        raise
    except Exception as error:
        database.close()
        raise StartError(
            f"{database.place()} cannot be used: {(str(error).splitlines() or [type(error).__name__])[0]}",
            hint="is it a database of schedulerd? Give it one of its own",
        ) from error
    return SqlStore(database)


def prepare(database: Database, release: str) -> None:
    """Makes or migrates the schema; StartError for what is a mistake in the address."""
    with mistakes_told(database):
        ensure_schema(database, release)


@contextmanager
def mistakes_told(database: Database) -> Iterator[None]:
    """Errors of the driver that no waiting would mend come out as StartError."""
    try:
        yield
    except Exception as error:
        mistake = database.mistake(error)
        if mistake is None:
            raise
        raise mistake from error
