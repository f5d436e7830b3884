"""A disk that is full, a database that is locked or gone: nothing false is written, no child is harmed, and the log
says what is wrong in words."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]

JOBS = """
defaults: {{timezone: UTC}}
jobs:
  every-second:
    schedule: "* * * * * *"
    command: 'echo "S $SCHED_RUN_ID" >> {file}; sleep 0.1; echo "E $SCHED_RUN_ID" >> {file}'
  long:
    command: >
      echo "S $SCHED_RUN_ID" >> {file}; until [ -e {file}.end ]; do sleep 0.1; done; echo "E $SCHED_RUN_ID" >> {file}
"""


def stamped(file: Path, kind: str) -> set[str]:
    lines = file.read_text().splitlines() if file.exists() else []
    return {line.split()[1] for line in lines if line.startswith(kind)}


def check_ledger(world: World, file: Path) -> None:
    """Every run whose child ended is COMPLETED, none is unfinished, every second has one entry."""
    wait_for(
        lambda: not any(run.unfinished for run in world.read_ledger()[0] if run.job == "long"),
        30,
        "the long run is settled",
    )
    assert world.stop() == 0
    runs, skips = world.read_ledger()
    ended = stamped(file, "E")
    assert {run.id for run in runs if run.status == "COMPLETED"} == ended
    assert {run.status for run in runs} <= {"COMPLETED", "PENDING"}
    covered = [run.instant for run in runs if run.instant is not None]
    covered += [at for skip in skips for at in range(skip.first, skip.last + 1)]
    assert len(covered) == len(set(covered))
    assert sorted(covered) == list(range(min(covered), max(covered) + 1))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("LOUDLY: only root can mount a small file system; run as root (CI does) to test a full disk")
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"LOUDLY: this machine mounts no tmpfs: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def ailments(world: World) -> dict[str, Any]:
    """What status says of the daemon itself, by what it is about."""
    status, body = world.get("/v1/status")
    assert status == 200, body
    return {one["about"]: one for one in json.loads(body)["problems"] if one["kind"] == "daemon"}


def start_long(world: World, file: Path) -> str:
    status, body = world.ask("POST", "/v1/jobs/long/runs", {})
    assert status == 202, body
    run: str = json.loads(body)["run_id"]
    wait_for(lambda: run in stamped(file, "S"), 10, "the long run has begun")
    return run


def end_long(file: Path, run: str) -> None:
    """Now, while the database is of no use, and gives the daemon the time to try and settle it."""
    file.with_name(f"{file.name}.end").touch()
    wait_for(lambda: run in stamped(file, "E"), 10, "the long run has ended by itself")
    threading.Event().wait(2.5)


def test_a_full_disk(make_world: Make, tmp_path: Path, small_disk: Path) -> None:
    file = tmp_path / "stamps"
    world = make_world(JOBS.format(file=file), SCHEDULER_STATE_DIR=str(small_disk))
    world.state = small_disk
    world.program = ("tests.tuned", "scheduler.engine.disk.EVERY=1")
    world.start()
    run = start_long(world, file)
    with (small_disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    wait_for(lambda: "full" in world.tail(), 20, "the log says that the disk is full")
    wait_for(lambda: ailments(world).keys() == {"disk"}, 20, "status says that the disk is full")
    assert ailments(world)["disk"]["command"] == f"df -h {small_disk}"
    assert ailments(world)["disk"]["since"]
    wait_for(lambda: world.get("/readyz")[0] == 503, 10, "it is not ready")
    end_long(file, run)
    (small_disk / "filler").unlink()
    world.wait_ready()
    wait_for(lambda: ailments(world) == {}, 20, "status says that all is well")
    before = len(stamped(file, "E"))
    wait_for(lambda: len(stamped(file, "E")) > before + 2, 20, "jobs run again")
    check_ledger(world, file)


def test_a_locked_database(make_world: Make, tmp_path: Path) -> None:
    file = tmp_path / "stamps"
    world = make_world(JOBS.format(file=file))
    world.start()
    run = start_long(world, file)
    other = sqlite3.connect(world.state / "scheduler.db", isolation_level=None, timeout=30)
    other.execute("BEGIN IMMEDIATE")
    wait_for(lambda: "locked" in world.tail(), 15, "the log says that the database is locked")
    wait_for(lambda: "locked" in ailments(world).get("database", {}).get("what", ""), 15, "status says so, too")
    end_long(file, run)
    other.execute("ROLLBACK")
    other.close()
    before = len(stamped(file, "E"))
    wait_for(lambda: len(stamped(file, "E")) > before + 2, 20, "jobs run again")
    check_ledger(world, file)


def test_a_database_that_was_removed(make_world: Make, tmp_path: Path) -> None:
    """Nothing is written into a file that nobody can find any more; when it is back, the daemon goes on."""
    file = tmp_path / "stamps"
    world = make_world(JOBS.format(file=file))
    world.start()
    run = start_long(world, file)
    moved = {path: path.with_name("moved-" + path.name) for path in world.state.glob("scheduler.db*")}
    for path, away in moved.items():
        path.rename(away)
    size = (world.state / "moved-scheduler.db").stat().st_size
    wait_for(lambda: "removed or replaced" in world.tail(), 15, "the log says that the database file is gone")
    wait_for(lambda: world.get("/readyz")[0] == 503, 15, "the daemon is not ready")
    end_long(file, run)
    assert not (world.state / "scheduler.db").exists()
    assert (world.state / "moved-scheduler.db").stat().st_size == size
    for path, away in moved.items():
        away.rename(path)
    world.wait_ready()
    before = len(stamped(file, "E"))
    wait_for(lambda: len(stamped(file, "E")) > before + 2, 20, "jobs run again")
    check_ledger(world, file)
