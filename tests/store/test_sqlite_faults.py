"""A disk that is full, a file that is locked, gone or damaged: told in words, and nothing half written."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from scheduler.core.errors import StartError, Unavailable
from scheduler.store.dialects.sqlite import SqliteDatabase, Turnstile
from scheduler.store.store import SqlStore, open_store
from tests.databases import RELEASE, Place
from tests.store.world import add, claim, new_run, set_up


@pytest.fixture
def file(sqlite_place: Place) -> Path:
    return sqlite_place.state_dir / "scheduler.db"


@pytest.fixture
def store(file: Path) -> Iterator[SqlStore]:
    opened = SqlStore(SqliteDatabase(file, patience=timedelta(milliseconds=200)))
    yield opened
    opened.close()


def ready(store: SqlStore) -> int:
    with store.queries() as queries:
        return queries.queues()[0].ready


def test_another_program_holds_the_file(store: SqlStore, file: Path) -> None:
    set_up(store)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked by another program"):
        add(store, new_run("job"))
    assert ready(store) == 0, "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    add(store, new_run("job"))
    assert ready(store) == 1


def test_the_disk_is_full(store: SqlStore) -> None:
    set_up(store)
    add(store, new_run("job"))

    @event.listens_for(store._database.engine, "begin")
    def no_more_pages(connection: object) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()  # type: ignore[attr-defined]
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]

    with pytest.raises(Unavailable, match="the disk is full"):
        add(store, *[new_run("job", payload="x" * 10_000) for _ in range(10)])
    assert ready(store) == 1, "all or nothing"
    event.remove(store._database.engine, "begin", no_more_pages)
    with store._database.writing() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    add(store, *[new_run("job", payload="x" * 10_000) for _ in range(10)])
    assert ready(store) == 11


def test_the_file_is_removed(store: SqlStore, file: Path) -> None:
    set_up(store)
    away = file.with_name("away.db")
    file.rename(away)
    for use in (lambda: add(store, new_run("job")), lambda: ready(store)):
        with pytest.raises(Unavailable, match="is gone: it was removed or replaced while the daemon runs"):
            use()
    assert not file.exists(), "no new file is made in its place"
    away.rename(file)
    add(store, new_run("job"))
    assert ready(store) == 1


def test_what_to_look_at_is_known_while_the_file_is_away(store: SqlStore, file: Path) -> None:
    assert store.db_status().away is None
    file.rename(file.with_name("away.db"))
    status = store.db_status()
    assert status.url == str(file)
    assert "is gone: it was removed or replaced" in str(status.away)
    assert status.look == f"ls -li {file}"
    assert [status.size, status.rows, status.revision, status.oldest_release] == [None] * 4


def test_the_file_is_removed_inside_a_transaction(store: SqlStore, file: Path) -> None:
    set_up(store)
    away = file.with_name("away.db")

    def write() -> None:
        with store.begin() as tx:
            tx.runs.insert([new_run("job")])
            file.rename(away)

    with pytest.raises(Unavailable, match="is gone"):
        write()
    away.rename(file)
    assert ready(store) == 0, "nothing was written into the file without a name"


def test_the_file_is_replaced(store: SqlStore, file: Path) -> None:
    set_up(store)
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    with pytest.raises(Unavailable, match="is gone"):
        add(store, new_run("job"))


def test_what_is_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "scheduler.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StartError, match="not an SQLite database"):
        open_store("", tmp_path, release=RELEASE)


def test_a_place_that_cannot_hold_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="file"):
        open_store("", tmp_path / "file", release=RELEASE)


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    open_store("", tmp_path / "new", release=RELEASE).close()
    assert (tmp_path / "new" / "scheduler.db").stat().st_mode & 0o777 == 0o600


def test_every_commit_is_on_disk(store: SqlStore) -> None:
    with store._database.writing() as connection:
        for pragma, value in {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}.items():
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value


def test_a_transaction_inside_a_transaction_is_a_mistake_of_the_code(store: SqlStore) -> None:
    set_up(store)
    with store.begin(), pytest.raises(RuntimeError, match="inside another"), store.begin():
        pass
    assert claim(store) == []


def test_mistakes_of_the_code_are_not_called_unavailable(store: SqlStore) -> None:
    from sqlalchemy.exc import OperationalError

    with pytest.raises(OperationalError), store._inside(store._database.writing) as session:
        session.connection.exec_driver_sql("SELECT nothing FROM nowhere")


def test_a_writer_waits_for_the_others_of_this_process_but_not_for_ever(store: SqlStore) -> None:
    set_up(store)
    errors: list[Exception] = []

    def write() -> None:
        try:
            add(store, new_run("job"))
        except Unavailable as error:
            errors.append(error)

    with store.begin():
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
    assert [str(error) for error in errors] != []
    assert "other transactions of this daemon" in str(errors[0])


def test_a_connection_in_use_is_closed_when_it_comes_back(store: SqlStore) -> None:
    """And not left to the garbage collector."""
    with store.read() as tx:
        tx.nodes.all()
        connection = tx.nodes.session.connection.connection.driver_connection  # type: ignore[attr-defined]
        store.close()
        connection.execute("SELECT 1")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_the_turnstile_lets_in_by_order_of_asking() -> None:
    turnstile = Turnstile()
    order: list[int] = []
    assert turnstile.enter(1)

    def wait(number: int) -> None:
        assert turnstile.enter(10)
        order.append(number)
        turnstile.leave()

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(turnstile._line) <= number:
            threading.Event().wait(0.001)
    turnstile.leave()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3, 4]
