"""What a daemon refuses to start with, and what it says then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

JOBS = "defaults: {timezone: UTC}\njobs: {a: {command: 'true'}}\n"


def refused(world: World, status: int = 78, **settings: str) -> str:
    """Starts another daemon with the settings of `world`, changed; what it says on its way out."""
    environment = world.environment() | settings
    done = subprocess.run(
        [sys.executable, "-m", "scheduler.daemon"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_second_daemon_on_one_state_directory(make_world: Make) -> None:
    world = make_world(JOBS)
    world.start()
    assert world.daemon is not None
    said = refused(world)
    assert f"{world.state} is in use by the daemon with pid {world.daemon.pid}" in said


def test_a_second_daemon_on_one_database_file(make_world: Make, tmp_path: Path) -> None:
    """Also when each has a state directory of its own."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    world = make_world(JOBS, SCHEDULER_DATABASE_URL=url)
    world.start()
    assert world.daemon is not None
    said = refused(world, SCHEDULER_STATE_DIR=str(tmp_path / "other"))
    assert f"shared.db is in use by the daemon with pid {world.daemon.pid}" in said
    assert world.stop() == 0
    world.start()


def test_a_second_daemon_on_a_hard_link_of_the_database_file(make_world: Make, tmp_path: Path) -> None:
    world = make_world(JOBS)
    world.start()
    link = tmp_path / "link.db"
    link.hardlink_to(world.state / "scheduler.db")
    said = refused(world, SCHEDULER_STATE_DIR=str(tmp_path / "other"), SCHEDULER_DATABASE_URL=f"sqlite:///{link}")
    assert f"the database file {link} has 2 names" in said
    assert world.stop() == 0


def test_another_environment(make_world: Make) -> None:
    world = make_world(JOBS)
    world.start()
    assert world.stop() == 0
    said = refused(world, SCHEDULER_ENVIRONMENT="laptop")
    assert "belongs to environment 'default'" in said
    assert "SCHEDULER_ENVIRONMENT" in said


def test_a_bad_file(make_world: Make) -> None:
    world = make_world("jobs:\n  a: {schedule: '61 * * * *', command: 'true'}\n  b: {comand: 'true'}\n")
    said = refused(world)
    assert "jobs.yaml:2" in said
    assert "jobs.yaml:3" in said
    assert not (world.state / "scheduler.db").exists()


def test_bad_settings_are_said_all_at_once(make_world: Make) -> None:
    said = refused(make_world(JOBS), SCHEDULER_LEASE="5", SCHEDULER_SLOTS="many", SCHEDULER_LISTEM="x")
    for word in ("SCHEDULER_LEASE", "SCHEDULER_SLOTS", "SCHEDULER_LISTEM"):
        assert word in said


def test_a_port_that_is_taken(make_world: Make, tmp_path: Path) -> None:
    world = make_world(JOBS)
    world.start()
    wait_for(lambda: "http://127.0.0.1:" in world.tail(), 10, "the log says where the daemon listens")
    port = world.tail().split("http://127.0.0.1:")[1].split('"')[0]
    said = refused(world, SCHEDULER_STATE_DIR=str(tmp_path / "other"), SCHEDULER_LISTEN=f"127.0.0.1:{port}")
    assert f"127.0.0.1:{port}" in said
    assert "SCHEDULER_LISTEN" in said


def test_a_state_directory_that_cannot_be_made(make_world: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refused(make_world(JOBS), SCHEDULER_STATE_DIR=str(tmp_path / "file" / "state"))
    assert "file/state" in said


def test_flags_win_over_the_environment(make_world: Make) -> None:
    world = make_world(JOBS)
    environment = world.environment() | {"SCHEDULER_SLOTS": "many"}
    done = subprocess.run(
        [sys.executable, "-m", "scheduler.daemon", "--slots", "none", "--config", os.devnull],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 78
    assert "SCHEDULER_SLOTS='none'" in done.stderr


def test_a_file_that_went_bad_is_named_where_it_is_checked(make_world: Make) -> None:
    world = make_world("jobs: {}\n")
    world.start()
    world.config.write_text("jobs: [\n")
    assert world.ask("POST", "/v1/reload")[0] == 422
    _, answer = world.ask("GET", "/v1/status")
    assert [one["command"] for one in json.loads(answer)["problems"]] == [f"schedctl check {world.config}"]


def test_a_disk_that_takes_nothing_is_no_traceback(tmp_path: Path) -> None:
    program = (
        "import errno, sys\n"
        "from scheduler import daemon, life\n"
        "def full(self):\n"
        "    raise OSError(errno.ENOSPC, 'No space left on device', '/var/lib/schedulerd/holder.json')\n"
        "life.Life.run = full\n"
        f"sys.exit(daemon.main(['--state-dir', {str(tmp_path)!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "schedulerd: cannot write /var/lib/schedulerd/holder.json: No space left on device;"
        " make room or access, then start it again\n"
    )
