"""A ledger that moves from SQLite to PostgreSQL under a daemon that is stopped for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.daemon.conftest import Make
from tests.daemon.instants import JOBS, check_and_stop, started
from tests.daemon.test_start import refused
from tests.daemon.waiting import wait_for
from tests.databases import Place


def schedctl(*arguments: str) -> str:
    program = "import sys; from scheduler.cli.main import main; sys.exit(main())"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("SCHEDULER_")}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_nothing_is_lost_or_doubled_on_the_way(make_world: Make, tmp_path: Path, fresh_postgres_place: Place) -> None:
    file, url = tmp_path / "instants", tmp_path / "url"
    url.write_text(fresh_postgres_place.url)
    world = make_world(JOBS.format(file=file))
    world.start()
    wait_for(lambda: len(started(file)) >= 3, 20, "the job runs")
    assert world.stop() == 0
    before = len(started(file))
    said = schedctl("db", "copy", "--database", str(world.state / "scheduler.db"), "--to-file", str(url))
    assert "numbers and audits agree" in said

    assert "was moved to postgresql://" in refused(world)
    world.url = fresh_postgres_place.url
    world.start()
    wait_for(lambda: len(started(file)) >= before + 3, 20, "the job runs on")
    check_and_stop(world, file)
