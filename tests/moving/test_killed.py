"""`schedctl db copy` as a process that is killed (-9) again and again: at no moment can both sides be used."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from scheduler.core.errors import StartError
from scheduler.store.store import open_store
from tests.databases import RELEASE, Place
from tests.engine.rig import Rig, jobs

PROGRAM = "import sys; from scheduler.cli.main import main; sys.exit(main())"


@pytest.fixture
def copying(sqlite_place: Place, empty_postgres_url: str) -> list[str]:
    """What copies a ledger with some history from SQLite to an empty PostgreSQL."""
    with closing(sqlite_place.open()) as store:
        rig = Rig(store, jobs({"a": {"schedule": "* * * * *"}, "b": {"schedule": "*/2 * * * *"}}))
        for _ in range(5):
            rig.tick(minutes=1)
            rig.finish()
        rig.desk.pause(["b"], until=None, reason="moving", author="ana")
    file = sqlite_place.state_dir / "scheduler.db"
    return [sys.executable, "-c", PROGRAM, "db", "copy", "--database", str(file), "--to", empty_postgres_url]


def usable(url: str, state_dir: Path) -> bool:
    """As a daemon opens it; nothing of it is changed."""
    try:
        open_store(url, state_dir, release=RELEASE).close()
    except StartError as error:
        if "unfinished copy" in error.reason or "was moved to" in error.reason:
            return False
        raise
    return True


def test_killed_after_each_thing_that_it_says(
    copying: list[str], sqlite_place: Place, empty_postgres_url: str, tmp_path: Path
) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("SCHEDULER_")}
    killed = 0
    while True:
        with subprocess.Popen(copying, env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if len(said) > killed:
                    process.kill()
                    break
            said += process.stderr.readlines()
        if process.returncode == 0:
            break
        assert process.returncode == -9, said
        killed += 1
        if "numbers and audits agree" not in "".join(said):
            assert not usable(empty_postgres_url, tmp_path)
    assert killed > 4
    assert usable(empty_postgres_url, tmp_path)
    assert not usable(sqlite_place.url, sqlite_place.state_dir)
