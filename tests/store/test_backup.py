"""A backup is of one moment, whole, checked, or not there."""

from __future__ import annotations

import multiprocessing
import os
import pwd
import signal
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from scheduler.core.errors import InvalidInput, Refused, SchedulerError
from scheduler.store.backup import back_up
from tests.daemon.waiting import wait_for
from tests.databases import Place


@pytest.fixture
def source(sqlite_place: Place) -> Path:
    return sqlite_place.state_dir / "scheduler.db"


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def add(connection: sqlite3.Connection, number: int) -> None:
    """A run with its payload and its attempt, as one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO runs (id, job, key, cause, status, created_at, queue, priority, attempt, failures, lost,"
        " has_payload, note, author, fence) VALUES (?, 'j', ?, 'api', 'COMPLETED', '2026-01-01T00:00:00.000000Z',"
        " 'default', 0, 1, 0, 0, 1, '', '', 1)",
        [f"run{number}", f"key{number}"],
    )
    connection.execute("INSERT INTO payloads VALUES (?, ?)", [f"run{number}", '"' + "x" * 2000 + '"'])
    connection.execute(
        "INSERT INTO attempts (run, number, node, fence, started_at, fingerprint, left)"
        " VALUES (?, 1, 'n', 1, '2026-01-01T00:00:00.000000Z', '', 0)",
        [f"run{number}"],
    )
    connection.execute("COMMIT")


def counts(path: Path) -> list[int]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        names = ("runs", "payloads", "attempts")
        return [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names]


def test_a_backup_has_everything_also_what_is_only_in_the_log(source: Path, tmp_path: Path) -> None:
    with closing(connect(source)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        for number in range(5):
            add(connection, number)
        assert source.with_name("scheduler.db-wal").stat().st_size > 0
        done = back_up(source, tmp_path / "copy.db")
    assert (done.path, done.runs) == (tmp_path / "copy.db", 5)
    assert done.size == done.path.stat().st_size
    assert done.path.stat().st_mode & 0o777 == 0o600
    assert counts(done.path) == [5, 5, 5]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["copy.db"]


def test_a_backup_of_a_database_that_is_written_all_the_while_is_of_one_moment(source: Path, tmp_path: Path) -> None:
    stop, written = threading.Event(), [0]

    def write() -> None:
        with closing(connect(source)) as connection:
            while not stop.is_set():
                add(connection, written[0])
                written[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: written[0] > 200, 20, "there is something to copy")
        for turn in range(5):
            before = written[0]
            done = back_up(source, tmp_path / f"{turn}.db")
            runs, payloads, attempts = counts(done.path)
            assert runs == payloads == attempts == done.runs
            assert before <= runs <= written[0] + 1
            wait_for(lambda before=written[0]: written[0] > before, 20, "the writer goes on")
    finally:
        stop.set()
        writer.join()


def test_a_backup_can_be_used_in_place_of_the_database(source: Path, tmp_path: Path) -> None:
    with closing(connect(source)) as connection:
        add(connection, 1)
    (tmp_path / "elsewhere").mkdir()
    back_up(source, tmp_path / "elsewhere" / "scheduler.db")
    opened = Place("sqlite", "", tmp_path / "elsewhere").open()
    assert opened.db_status().rows["runs"] == 1
    opened.close()


def test_a_backup_never_replaces_a_file(source: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(Refused, match="is there already"):
        back_up(source, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_a_damaged_database_gives_no_backup(source: Path, tmp_path: Path) -> None:
    with closing(connect(source)) as connection:
        for number in range(200):
            add(connection, number)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'payloads'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with source.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with pytest.raises(SchedulerError, match="is damaged"):
        back_up(source, tmp_path / "copy.db")
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_an_index_that_misses_rows_gives_no_backup(source: Path, tmp_path: Path) -> None:
    """Nothing stumbles over it, and every answer is wrong."""
    with closing(connect(source)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        index = connection.execute("SELECT * FROM sqlite_master WHERE name = 'runs_job'").fetchone()
        connection.execute("DELETE FROM sqlite_master WHERE name = 'runs_job'")
    with closing(connect(source)) as connection:
        add(connection, 1)
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index)
    with pytest.raises(SchedulerError, match=r"is damaged: .*runs_job"):
        back_up(source, tmp_path / "copy.db")


def test_a_row_without_its_run_gives_no_backup(source: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("INSERT INTO payloads VALUES ('nobody', '1')")
    with pytest.raises(SchedulerError, match="a row of payloads without its runs"):
        back_up(source, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("text", ["", "no database at all, but long enough to be looked at" * 100])
def test_what_is_no_database_of_ours(tmp_path: Path, text: str) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(InvalidInput, match="other"):
        back_up(tmp_path / "other", tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="missing: No such file"):
        back_up(tmp_path / "missing", tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other"]


def test_a_target_that_cannot_be_made(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nowhere"):
        back_up(source, tmp_path / "nowhere" / "copy.db")


def test_a_backup_that_is_killed_leaves_no_file_with_its_name(source: Path, tmp_path: Path) -> None:
    with closing(connect(source)) as connection:
        for number in range(100):
            add(connection, number)

    def held(draft: Path) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    def child() -> None:
        from scheduler.store import backup

        backup._on_disk = held  # type: ignore[assignment]
        back_up(source, tmp_path / "copy.db")

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "copy.db").exists()
    assert back_up(source, tmp_path / "copy.db").runs == 100


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """As somebody who may not enter that folder."""
    former = os.geteuid()
    folder.chmod(0o000)
    if former == 0:
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(former)
        folder.chmod(0o700)


def test_a_database_that_somebody_may_not_read(source: Path) -> None:
    """As the state directory of a daemon is to those who may only use its socket."""
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o777)
        with without_rights(source.parent), pytest.raises(InvalidInput, match="Permission denied") as refused:
            back_up(source, Path(open_to_all) / "copy.db")
        assert os.listdir(open_to_all) == []
    assert "root may read it" in (refused.value.hint or "")


def test_a_target_that_somebody_may_not_write(source: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    with without_rights(tmp_path / "theirs"), pytest.raises(InvalidInput, match="theirs"):
        back_up(source, tmp_path / "theirs" / "copy.db")
