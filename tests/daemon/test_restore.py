"""A day of an operator: back up, lose the database, restore, start. No instant runs twice, and each has its entry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.instants import JOBS, check_and_stop, started
from tests.daemon.waiting import wait_for


def start_restored(world: World) -> None:
    with world.log.open("ab") as log:
        world.daemon = subprocess.Popen(
            [sys.executable, "-m", "scheduler.daemon", "--after-restore"],
            env=world.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    world.wait_ready()


def back_up(world: World, target: Path) -> None:
    program = "import sys; from scheduler.cli.main import main; sys.exit(main())"
    environment = {**os.environ, "SCHEDULER_SOCKET": str(world.state / "schedctl.sock")}
    command = [sys.executable, "-c", program, "db", "backup", str(target)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(target)


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_backup_loss_and_restore(make_world: Make, tmp_path: Path, ended: str) -> None:
    file = tmp_path / "instants"
    world = make_world(JOBS.format(file=file))
    world.start()
    wait_for(lambda: len(started(file)) >= 2, 20, "the job runs")
    back_up(world, tmp_path / "backup.db")
    known = len(started(file))
    wait_for(lambda: len(started(file)) >= known + 3, 20, "it runs on after the backup")
    if ended == "stopped":
        assert world.stop() == 0
    else:
        world.kill()

    for path in world.state.glob("scheduler.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", world.state / "scheduler.db")
    start_restored(world)
    known = len(started(file))
    wait_for(lambda: len(started(file)) >= known + 2, 20, "it runs again")
    assert '"owed_instants_written_off"' in world.log.read_text()
    check_and_stop(world, file)
    assert {skip.reason for skip in world.read_ledger()[1]} == {"missed"}
