"""One SQLite file, one daemon, whatever names lead to it."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
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
def renamed(file: Path, tmp_path: Path) -> Callable[[], Path]:
    """Gives the file another name, and takes the one that it had."""

    def rename() -> Path:
        other = tmp_path / "two" / "other.db"
        other.parent.mkdir()
        return file.rename(other)

    return rename


def test_a_file_of_several_names_is_refused_whoever_uses_it(file: Path, tmp_path: Path) -> None:
    """What was written last lies beside the one name, and is not there for whoever comes by the other."""
    link = tmp_path / "link.db"
    os.link(file, link)
    for name in (file, link):
        with pytest.raises(StartError, match=r"has 2 names, which `find .*` shows") as refused:
            FileLock.acquire(name, patience=60)
        assert "schedctl db backup" in str(refused.value.hint)
    link.unlink()
    lock = FileLock.acquire(file)
    os.link(file, link)
    with pytest.raises(StartError, match="has 2 names"):
        FileLock.acquire(link, patience=60)
    lock.release()


def test_a_file_that_is_renamed_is_the_same_file(file: Path, renamed: Callable[[], Path]) -> None:
    lock = FileLock.acquire(file)
    other = renamed()
    with pytest.raises(StartError, match="in use by another daemon, under another name"):
        FileLock.acquire(other, patience=SHORT)
    lock.release()
    FileLock.acquire(other, patience=SHORT).release()


def test_a_new_file_that_is_renamed_while_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    lock = FileLock.acquire(file, create=True)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StartError, match="under another name"):
        FileLock.acquire(file.rename(tmp_path / "other.db"), patience=SHORT)
    lock.release()


def test_who_only_looks_makes_no_file(tmp_path: Path) -> None:
    FileLock.acquire(tmp_path / "new.db").release()
    assert not (tmp_path / "new.db").exists()


def test_whoever_inherits_it_holds_it_too(file: Path, renamed: Callable[[], Path]) -> None:
    lock = FileLock.acquire(file)
    other = renamed()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=lock.fds, text=True
    ) as supervisor:
        lock.release()
        with pytest.raises(StartError, match="under another name"):
            FileLock.acquire(other, patience=SHORT)
        supervisor.communicate("\n")
    FileLock.acquire(other, patience=SHORT).release()


def test_sqlite_and_the_lock_do_not_disturb_each_other(file: Path, renamed: Callable[[], Path]) -> None:
    lock = FileLock.acquire(file)
    other = renamed()
    for _ in range(2):
        with closing(sqlite3.connect(other, timeout=0)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("INSERT INTO numbers VALUES (1)")
            connection.execute("COMMIT")
        # SQLite has closed its descriptors of the file, with which its own locks end.
        with pytest.raises(StartError):
            FileLock.acquire(other, patience=SHORT)
    lock.release()
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (2,)


def test_where_the_system_has_no_such_locks_the_one_beside_the_file_is_enough(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(fcntl, "fcntl", unknown)
    FileLock.acquire(file, patience=SHORT).release()
