"""The schema: what the migrations make is what the code uses; who may start on it."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from scheduler.core.errors import StartError
from scheduler.core.event import NewEvent, Via
from scheduler.store.schema import HEAD, OLDEST_RELEASE, OLDEST_RELEASE_KEY, upgrade
from scheduler.store.store import SqlStore, open_database, open_store
from tests.databases import RELEASE, Place
from tests.store.world import T0, add, claim, get, new_run, set_up, settle, settlement

_POSTGRES = {
    "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
    " WHERE table_schema = 'public' ORDER BY table_name, column_name",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
    "constraints": "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace ORDER BY conname",
}


def _shape(connection: Connection) -> dict[str, list[str]]:
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return {row.name: re.split(r"\s*,\s*|\s*\(\s*|\s*\)\s*", " ".join(row.sql.split())) for row in rows}
    return {what: [str(tuple(row)) for row in connection.exec_driver_sql(query)] for what, query in _POSTGRES.items()}


def _made(place: Place) -> dict[str, list[str]]:
    """What a first start makes."""
    with closing(place.open()) as store, store._database.reading() as connection:
        return _shape(connection)


def _migrated(url: str, folder: Path) -> dict[str, list[str]]:
    """What all migrations make in an empty database."""
    with closing(open_database(url, folder)) as empty, empty.migrating() as connection:
        upgrade(connection)
        return _shape(connection)


def test_migrations_make_what_the_code_uses_on_sqlite(sqlite_place: Place, tmp_path: Path) -> None:
    made, migrated = _made(sqlite_place), _migrated(f"sqlite:///{tmp_path}/migrated.db", tmp_path)
    assert {name: sorted(parts) for name, parts in migrated.items()} == {
        name: sorted(parts) for name, parts in made.items()
    }


def _in_order(connection: Connection) -> dict[str, list[str]]:
    """Per table, its indexes as they were made."""
    rows = connection.exec_driver_sql(
        "SELECT tbl_name, name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY rowid"
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.tbl_name, []).append(row.name)
    return found


def test_indexes_are_made_in_one_order_on_sqlite(tmp_path: Path) -> None:
    """SQLite chooses by it."""
    with closing(open_store("", tmp_path, release=RELEASE)) as store, store._database.reading() as connection:
        made = _in_order(connection)
    with (
        closing(open_database(f"sqlite:///{tmp_path}/migrated.db", tmp_path)) as empty,
        empty.migrating() as connection,
    ):
        upgrade(connection)
        migrated = _in_order(connection)
    assert made == migrated


def test_migrations_make_what_the_code_uses_on_postgresql(postgres_place: Place, empty_postgres_url: str) -> None:
    assert _migrated(empty_postgres_url, postgres_place.state_dir) == _made(postgres_place)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_ledger_from_before_events_is_taken_over(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/old.db" if kind == "sqlite" else request.getfixturevalue("empty_postgres_url")
    with closing(open_database(url, tmp_path)) as old, old.migrating() as connection:
        upgrade(connection, "0004")
        connection.exec_driver_sql(
            "INSERT INTO runs (id, job, key, cause, status, created_at, queue, priority, attempt, failures, lost, lock,"
            " has_payload, note, author, fence) VALUES ('old', 'job', 'old', 'api', 'PENDING',"
            f" '{T0:%Y-%m-%dT%H:%M:%S.%fZ}', 'default', 0, 0, 0, 0, 'lock:x', '0', '', '', 0)"
        )
        connection.exec_driver_sql("INSERT INTO locks (key, fence) VALUES ('lock:x', 7)")
    with closing(open_store(url, tmp_path, release=RELEASE)) as store:
        set_up(store)
        later = new_run("job", lock="lock:x", event=3, rank=5)
        add(store, new_run("job", lock="lock:x"), later)
        assert store.db_status().revision == HEAD
        assert (get(store, "old").event, get(store, "old").rank) == (None, None)
        assert [run.id for run in claim(store)] == [later.id]
        settle(store, settlement(get(store, later.id)))
        assert [run.id for run in claim(store)] == ["old"]
        with store.begin() as tx:
            assert tx.events.add([NewEvent("shop", "evt_1", Via.WEBHOOK, T0, b"{}")]) == {("shop", "evt_1"): (1, True)}
            assert tx.scans.states() == []


def test_a_second_start_changes_nothing(place: Place) -> None:
    for _ in range(2):
        store = place.open()
        status = store.db_status()
        store.close()
        assert (status.revision, status.oldest_release) == (HEAD, OLDEST_RELEASE)


def test_daemons_that_start_together_migrate_once(empty_postgres_url: str, tmp_path: Path) -> None:
    def start(_: int) -> str:
        store = open_store(empty_postgres_url, tmp_path, release=RELEASE)
        revision = store.db_status().revision
        store.close()
        return revision

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(start, range(3))) == [HEAD] * 3


def _from_the_future(store: SqlStore, oldest: str) -> None:
    with store.begin() as tx:
        tx.generations.set_value(OLDEST_RELEASE_KEY, oldest)
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    store.close()


def test_a_newer_schema_that_allows_this_release(fresh_place: Place) -> None:
    _from_the_future(fresh_place.open(), "0.1.0")
    store = fresh_place.open()
    assert store.db_status().revision == "9999"
    store.close()


def test_a_newer_schema_that_needs_a_newer_release(fresh_place: Place) -> None:
    _from_the_future(fresh_place.open(), "0.10.0")
    with pytest.raises(StartError, match=r"needs schedulerd 0\.10\.0 or newer, this is 0\.1\.0"):
        fresh_place.open()
    open_store(fresh_place.url, fresh_place.state_dir, release="0.10.0.dev1").close()


@pytest.mark.parametrize("url", ["mysql://host/name", "nonsense"])
def test_an_unknown_database(url: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="there is no database"):
        open_store(url, tmp_path, release=RELEASE)


def test_a_url_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="cannot be read"):
        open_store("postgresql://host:port/name", tmp_path, release=RELEASE)


def test_the_password_is_not_shown(tmp_path: Path) -> None:
    database = open_database("postgresql://me:geheim@host/name", tmp_path)
    assert database.place() == "postgresql://me:***@host/name"
    database.close()


@pytest.mark.parametrize("theirs", ["CREATE TABLE notes (id int)", "CREATE TABLE alembic_version (version_num text)"])
def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path, theirs: str) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(theirs)
    before = path.read_bytes()
    with pytest.raises(StartError, match=r"another program's: it has (notes|alembic_version) and no table") as refused:
        open_store(f"sqlite:///{path}", tmp_path, release=RELEASE)
    assert "SCHEDULER_DATABASE_URL" in (refused.value.hint or "")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone() == (1,)
    assert before[:16] == path.read_bytes()[:16]


def test_on_postgresql_others_may_live_beside_us_under_other_names(fresh_postgres_place: Place, tmp_path: Path) -> None:
    with closing(open_database(fresh_postgres_place.url, tmp_path)) as there, there.migrating() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (id int)")
        connection.exec_driver_sql("CREATE SCHEMA crowded")
        connection.exec_driver_sql("CREATE TABLE crowded.jobs (id int)")
        connection.exec_driver_sql("CREATE SCHEMA empty")
    with closing(fresh_postgres_place.open()) as store:
        assert store.now()
    sign = "&" if "?" in fresh_postgres_place.url else "?"
    with pytest.raises(StartError, match="another program's: it has jobs and no table") as refused:
        open_store(f"{fresh_postgres_place.url}{sign}options=-csearch_path%3Dcrowded", tmp_path, release=RELEASE)
    assert "search_path" in (refused.value.hint or "")
    with closing(
        open_store(f"{fresh_postgres_place.url}{sign}options=-csearch_path%3Dempty", tmp_path, release=RELEASE)
    ) as apart:
        assert apart.now()
