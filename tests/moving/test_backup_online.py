"""`schedctl db backup` beside a daemon that works as fast as it can: each copy opens, is whole, and audits clean."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from scheduler.engine.audit import audit
from tests.daemon.conftest import Make, make_world
from tests.daemon.waiting import wait_for
from tests.databases import Place

__all__ = ["make_world"]

JOBS = (
    "defaults: {timezone: UTC, catch_up: all}\njobs:\n"
    + "".join(f'  j{number}: {{schedule: "* * * * * *", command: "true"}}\n' for number in range(30))
    + '  burst: {command: "true"}\n'
)
PROGRAM = "import sys; from scheduler.cli.main import main; sys.exit(main())"


def planned(file: Path) -> datetime:
    """Up to which instant every job was planned."""
    query = "SELECT min(last) FROM (SELECT max(scheduled_for) AS last FROM runs WHERE job LIKE 'j%' GROUP BY job)"
    with closing(sqlite3.connect(file)) as connection:
        return datetime.fromisoformat(connection.execute(query).fetchone()[0])


@pytest.mark.crash
def test_each_copy_audits_clean(make_world: Make, tmp_path: Path) -> None:
    world = make_world(JOBS)
    world.start()
    environment = {**os.environ, "SCHEDULER_SOCKET": str(world.state / "schedctl.sock")}
    seen = 0
    for number in range(3):
        more = seen + 50
        wait_for(lambda: len(world.read_ledger()[0]) > more, 60, "the daemon works")  # noqa: B023
        world.ask("POST", "/v1/jobs/burst/runs:batch", [{} for _ in range(100)])
        folder = tmp_path / f"copy{number}"
        folder.mkdir()
        command = [sys.executable, "-c", PROGRAM, "db", "backup", str(folder / "scheduler.db")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        with closing(Place("sqlite", "", folder).open()) as copy:
            # What was due later nobody had planned yet when the copy was made.
            until = planned(folder / "scheduler.db")
            report = audit(copy, until - timedelta(hours=1), until)
            assert sum(job.ran for job in report.jobs) > 0
            assert report.clean, [job for job in report.jobs if not job.clean]
        seen = len(world.read_ledger()[0])
    assert world.stop() == 0
