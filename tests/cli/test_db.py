"""`schedctl db`: on the database itself, with and without a daemon."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.screen import Screen
from tests.cli.typed import Typist
from tests.databases import Place


@pytest.fixture
def schedctl(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typist:
    monkeypatch.chdir(tmp_path)
    return Typist(capsys, {"SCHEDULER_SOCKET": str(tmp_path / "none")})


def runs(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])


def test_backup_of_a_named_database(schedctl: Typist, sqlite_place: Place) -> None:
    file = sqlite_place.state_dir / "scheduler.db"
    for number, name in enumerate((str(file), f"sqlite:///{file}", "state/scheduler.db")):
        answer = schedctl("db", "backup", "--database", name, f"{number}.db")
        assert (answer.code, answer.out) == (0, f"{number}.db\n"), answer.err
        assert answer.err.startswith("✓ ")
        assert "0 runs" in answer.err
        assert runs(Path(f"{number}.db")) == 0
    answer = schedctl("db", "backup", "--database", str(file), "0.db")
    assert answer.code == 5
    assert "is there already" in answer.err


def test_backup_into_a_directory_is_named_after_the_moment(schedctl: Typist, sqlite_place: Place) -> None:
    answer = schedctl("db", "backup", ".", "-o", "json", SCHEDULER_STATE_DIR=str(sqlite_place.state_dir))
    assert answer.data["path"] == "scheduler-20260302T080000Z.db"
    assert answer.data["size"] == Path(answer.data["path"]).stat().st_size


def test_backup_of_the_running_daemons_database(screen: Screen, tmp_path: Path) -> None:
    screen("run-now", "report")
    assert screen("db", "backup", str(tmp_path / "copy.db")) == [str(tmp_path / "copy.db")]
    assert runs(tmp_path / "copy.db") == 1


def test_backup_finds_the_database_of_a_daemon_that_is_stopped(schedctl: Typist, sqlite_place: Place) -> None:
    answer = schedctl("db", "backup", "copy.db")
    assert answer.code == 4
    assert "/var/lib/schedulerd" in answer.err
    assert "--database" in answer.err
    sqlite_place.state_dir.rename("var")
    assert schedctl("db", "backup", "copy.db").code == 0


def test_backup_says_how_postgresql_does_it(schedctl: Typist) -> None:
    answer = schedctl("db", "backup", "my copy.dump", SCHEDULER_DATABASE_URL="postgresql://me:sesame@db/ledger")
    assert answer.code == 5
    assert "pg_dump --format=custom '--file=my copy.dump'" in answer.err
    assert "sesame" not in answer.err


def test_a_database_that_cannot_be(schedctl: Typist) -> None:
    answer = schedctl("db", "backup", "--database", "mysql://me:sesame@db/x", "copy.db")
    assert answer.code == 1
    assert "mysql" in answer.err
    assert "sesame" not in answer.err
