"""`schedctl db`: on the database itself, with and without a daemon."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.cli.verbs.db import rows_of
from scheduler.core.errors import DatabaseAway, StartError
from scheduler.store.store import SqlStore
from scheduler.store.transfer import Transfer
from scheduler.supervisor.file_lock import FileLock
from tests.cli.screen import Screen
from tests.cli.typed import NOW, Typist
from tests.databases import Place
from tests.engine.doubles import TurnedClock
from tests.engine.rig import Rig, jobs


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


def test_a_directory_that_is_not_there_is_no_name_for_a_file(schedctl: Typist, sqlite_place: Place) -> None:
    state = str(sqlite_place.state_dir)
    before = sorted(Path().iterdir())
    for target in ("gone/", "gone/copy.db", f"{Path('gone').absolute()}/"):
        answer = schedctl("db", "backup", target, SCHEDULER_STATE_DIR=state)
        assert answer.code == 5, target
        assert "there is no directory " in answer.err
        assert "mkdir -p " in answer.err
        assert sorted(Path().iterdir()) == before
    Path("gone").mkdir()
    answer = schedctl("db", "backup", "gone/", SCHEDULER_STATE_DIR=state)
    assert answer.out == "gone/scheduler-20260302T080000Z.db\n"


def test_one_run_is_no_runs(screen: Screen, tmp_path: Path) -> None:
    screen("run-now", "report")
    screen("db", "backup", str(tmp_path / "copy.db"))
    assert " with 1 run, schema" in screen.err


def test_an_estimate_looks_like_one() -> None:
    assert rows_of(100_000, "postgresql") == "100000"
    assert rows_of(4_000_000, "postgresql") == "~4000000"
    assert rows_of(4_000_000, "sqlite") == "4000000"


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


def test_backup_does_not_take_another_machines_path_for_its_own(schedctl: Typist) -> None:
    answer = schedctl("db", "backup", "copy.db", SCHEDCTL_URL="https://elsewhere:8780")
    assert answer.code == 5
    assert "--database" in answer.err


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


# ------------------------------------------------------------ copy


def test_copy_moves_the_ledger_and_says_what_to_do_next(schedctl: Typist, sqlite_place: Place, tmp_path: Path) -> None:
    rig = Rig(sqlite_place.open(), jobs({"a": {"schedule": "* * * * *"}, "b": {}}))
    rig.tick(minutes=1)
    rig.finish()
    rig.desk.run_now("b", author="ana", payload={"n": 1}, has_payload=True)
    old, new = sqlite_place.state_dir / "scheduler.db", tmp_path / "new.db"
    answer = schedctl("db", "copy", "--database", str(old), "--to", f"sqlite:///{new}")
    assert answer.code == 0, answer.err
    lines = answer.err.splitlines()
    assert "runs: 2" in lines
    assert f"rows are in {new}; numbers and audits agree" in answer.err
    assert f"{old} is marked as moved" in answer.err
    assert runs(new) == 2
    with pytest.raises(StartError, match=f"was moved to {new}"):
        sqlite_place.open()
    again = schedctl("db", "copy", "--database", str(old), "--to", f"sqlite:///{new}")
    assert again.code == 0
    assert f"{old} was copied to {new} before: nothing is left to do" in again.err
    elsewhere = schedctl("db", "copy", "--database", str(old), "--to", f"sqlite:///{tmp_path / 'third.db'}")
    assert elsewhere.code == 5
    assert f"was moved to {new} before" in elsewhere.err


def test_copy_is_refused_while_a_daemon_uses_the_ledger(schedctl: Typist, sqlite_place: Place, tmp_path: Path) -> None:
    file = sqlite_place.state_dir / "scheduler.db"
    lock = FileLock.acquire(file)
    try:
        answer = schedctl("db", "copy", "--database", str(file), "--to", str(tmp_path / "new.db"))
    finally:
        lock.release()
    assert answer.code == 5
    assert f"is in use by the daemon with pid {os.getpid()}" in answer.err
    assert "systemctl stop" in answer.err
    assert not (tmp_path / "new.db").exists()


def test_copy_needs_two_databases(schedctl: Typist, sqlite_place: Place, tmp_path: Path) -> None:
    file = sqlite_place.state_dir / "scheduler.db"
    (tmp_path / "url").write_text("postgresql://me:sesame@db/ledger\n")
    assert schedctl("db", "copy", "--database", str(file)).code == 2
    assert schedctl("db", "copy", "--to", "x.db", "--to-file", "url").code == 2
    assert "the same database" in schedctl("db", "copy", "--database", str(file), "--to", str(file)).err
    Path("link.db").symlink_to(file)
    assert "the same database" in schedctl("db", "copy", "--database", str(file), "--to", "link.db").err
    answer = schedctl("db", "copy", "--database", str(file), "--to", "/proc/nothing/x.db")
    assert answer.code == 5
    assert "stop it" not in answer.err
    assert schedctl("db", "copy", "--database", "missing.db", "--to", "x.db").code == 4
    assert not Path("missing.db").exists()
    assert schedctl("db", "copy", "--database", str(file), "--to-file", "nowhere").code == 1
    answer = schedctl("db", "copy", "--database", str(file), "--to-file", "url")
    assert answer.code in (3, 78)
    assert "db/ledger" in answer.err
    assert "sesame" not in answer.err + answer.out


def test_copy_whose_audits_differ_is_not_finished(
    schedctl: Typist, sqlite_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(sqlite_place.open(), jobs({"a": {"schedule": "* * * * *"}}), TurnedClock(NOW - timedelta(minutes=5)))
    rig.tick(minutes=1)
    rig.finish()
    copied = Transfer.copy

    def lose(self: Transfer, progress: Callable[[str, int, int], None]) -> int:
        total = copied(self, progress)
        with self._target.writing() as connection:
            connection.exec_driver_sql("UPDATE runs SET scheduled_for = NULL")
        return total

    monkeypatch.setattr(Transfer, "copy", lose)
    answer = schedctl("db", "copy", "--database", str(sqlite_place.state_dir / "scheduler.db"), "--to", "new.db")
    assert answer.code == 1
    assert "the audits of the last 7 days do not agree" in answer.err
    sqlite_place.open().close()


def test_status_of_a_database_that_is_away(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `status` offers to type then has an answer, and so have the others."""

    def away(store: SqlStore) -> Any:
        raise DatabaseAway(f"database {store._database.place()}: connection refused", hint="it goes on by itself")

    monkeypatch.setattr(SqlStore, "queries", away)
    monkeypatch.setattr(SqlStore, "_measured", away)
    kind, *lines = screen("db", "status")
    place = kind.removeprefix("sqlite  ")
    assert lines == [
        "✗ it does not answer: connection refused",
        "    it goes on by itself",
        f"    → ls -li {place}   on the daemon's machine",
        "size, schema and rows are unknown meanwhile; `status` and `show` are answered without it",
    ]
    assert (screen.code, screen.next) == (3, "schedctl status")
    assert screen.json("db", "status")["away"] == f"database {place}: connection refused"
    assert screen.code == 3
    assert screen("list") == []
    assert screen.err == (
        f"schedctl: database {place}: connection refused\n"
        "hint: it goes on by itself; what to look at: `schedctl db status`\n"
    )
    assert screen("show")
    assert screen.code == 0
