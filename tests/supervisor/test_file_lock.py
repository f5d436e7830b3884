"""One SQLite file, one daemon, whatever names lead to it."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.errors import StartError
from scheduler.supervisor.file_lock import FileLock

SHORT = 0.1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one" / "scheduler.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE numbers (number)")
    return path


@pytest.fixture
def link(file: Path, tmp_path: Path) -> Path:
    other = tmp_path / "two" / "other.db"
    other.parent.mkdir()
    os.link(file, other)
    return other


def test_a_hard_link_is_the_same_file(file: Path, link: Path) -> None:
    lock = FileLock.acquire(file)
    with pytest.raises(StartError, match=r"in use by another daemon, under another name: `find .* shows its 2 names"):
        FileLock.acquire(link, patience=SHORT)
    lock.release()
    FileLock.acquire(link, patience=SHORT).release()


def test_a_link_that_is_made_while_a_new_file_is_used(tmp_path: Path) -> None:
    file, link = tmp_path / "new.db", tmp_path / "link.db"
    lock = FileLock.acquire(file, create=True)
    assert file.stat().st_mode & 0o777 == 0o600
    os.link(file, link)
    with pytest.raises(StartError, match="under another name"):
        FileLock.acquire(link, patience=SHORT)
    lock.release()


def test_who_only_looks_makes_no_file(tmp_path: Path) -> None:
    FileLock.acquire(tmp_path / "new.db").release()
    assert not (tmp_path / "new.db").exists()


def test_whoever_inherits_it_holds_it_too(file: Path, link: Path) -> None:
    lock = FileLock.acquire(file)
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=lock.fds, text=True
    ) as supervisor:
        lock.release()
        with pytest.raises(StartError, match="under another name"):
            FileLock.acquire(link, patience=SHORT)
        supervisor.communicate("\n")
    FileLock.acquire(link, patience=SHORT).release()


def test_sqlite_and_the_lock_do_not_disturb_each_other(file: Path, link: Path) -> None:
    lock = FileLock.acquire(file)
    for _ in range(2):
        with closing(sqlite3.connect(file, timeout=0)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("INSERT INTO numbers VALUES (1)")
            connection.execute("COMMIT")
        # SQLite has closed its descriptors of the file, with which its own locks end.
        with pytest.raises(StartError):
            FileLock.acquire(link, patience=SHORT)
    lock.release()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (2,)


def test_where_the_system_has_no_such_locks_several_names_are_refused(
    file: Path, link: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(fcntl, "fcntl", unknown)
    with pytest.raises(StartError, match="has several names") as refused:
        FileLock.acquire(file, patience=SHORT)
    assert refused.value.hint == "leave it one name"
    link.unlink()
    FileLock.acquire(file, patience=SHORT).release()
