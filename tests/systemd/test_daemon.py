"""A real daemon under a service manager that only listens."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from scheduler.service import SHORTEST_HANG
from tests.crash.world import World
from tests.daemon.waiting import wait_for
from tests.systemd.conftest import Hire
from tests.systemd.manager import Manager

JOBS = "defaults: {timezone: UTC}\njobs:\n  quick: {command: 'true'}\n  long: {command: 'sleep 60', kill_after: 1s}\n"
BAD = JOBS + "  bad: {schedule: '61 * * * *', command: 'true'}\n"
WATCHDOG = 8.0
MakeWorld = Callable[..., World]


def launch(world: World, *module: str) -> None:
    """Starts the daemon and waits for nothing."""
    with world.log.open("ab") as log:
        world.daemon = subprocess.Popen(
            [sys.executable, "-m", *(module or ("scheduler.daemon",))],
            env=world.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def run(world: World, job: str) -> str:
    status, answer = world.ask("POST", f"/v1/jobs/{job}/runs", {})
    assert status == 202, answer
    return str(json.loads(answer)["run_id"])


def schedctl(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As ExecReload= calls it."""
    environment = {**os.environ, "SCHEDULER_SOCKET": str(world.state / "schedctl.sock")}
    command = [sys.executable, "-c", "import sys; from scheduler.cli.main import main; sys.exit(main())", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def fed_beyond_a_hang(manager: Manager, since: float) -> None:
    """Waits for a ping at a time at which a loop that hangs since then has ended the pings."""
    late = since + max(SHORTEST_HANG, WATCHDOG / 2) + 1
    wait_for(lambda: manager.times("WATCHDOG")[-1] > late, 3 * WATCHDOG, "the watchdog is fed all the same")


def lines(manager: Manager, name: str) -> list[str]:
    return [message[name] for message in manager.messages() if name in message]


@pytest.mark.parametrize("abstract", [False, True])
def test_from_the_start_to_the_end_of_the_drain(make_world: MakeWorld, hire: Hire, abstract: bool) -> None:
    manager = hire(abstract=abstract, watchdog=WATCHDOG)
    world = make_world(JOBS, **manager.environment)
    launch(world)
    assert world.daemon is not None
    manager.wait(lambda m: "READY" in m, 60)
    assert world.get("/readyz")[0] == 200
    before = manager.messages()
    assert next(lines_ for lines_ in before if "EXTEND_TIMEOUT_USEC" in lines_)
    assert any(message.get("STATUS", "").startswith("Opening the database") for message in before)
    assert before[-1]["STATUS"] == "2 jobs, none running"

    run(world, "long")
    manager.wait(lambda m: m.get("STATUS") == "2 jobs, 1 running")
    world.daemon.send_signal(signal.SIGTERM)
    leaving = manager.wait(lambda m: "STOPPING" in m)
    assert int(leaving["EXTEND_TIMEOUT_USEC"]) >= 30_000_000
    manager.wait(lambda m: m.get("STATUS", "").startswith("Leaving: waits for long ("))
    assert world.stop() == 0
    assert manager.senders() == {world.daemon.pid}
    assert lines(manager, "READY") == ["1"]
    assert lines(manager, "STOPPING") == ["1"]


def test_a_reload_by_signal_and_by_schedctl(make_world: MakeWorld, hire: Hire) -> None:
    manager = hire()
    world = make_world(JOBS, **manager.environment)
    launch(world)
    assert world.daemon is not None
    manager.wait(lambda m: "READY" in m, 60)
    heard = len(manager.messages())

    asked = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    world.daemon.send_signal(signal.SIGHUP)
    begun = manager.wait(lambda m: "RELOADING" in m, since=heard)
    assert asked <= int(begun["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    manager.wait(lambda m: "READY" in m, since=heard)

    heard = len(manager.messages())
    world.config.write_text(BAD)
    failed = schedctl(world, "reload")
    assert failed.returncode == 1
    assert "jobs.yaml:5" in failed.stderr
    assert [next(iter(m)) for m in manager.messages()[heard:] if "STATUS" not in m] == ["RELOADING", "READY"]
    manager.wait(lambda m: "the last reload was refused: " in m.get("STATUS", ""))
    assert world.get("/readyz")[0] == 200

    world.config.write_text(JOBS)
    assert schedctl(world, "reload").returncode == 0
    manager.wait(lambda m: m.get("STATUS") == "2 jobs, none running", since=heard)
    assert world.stop() == 0


def test_what_is_the_daemons_alone_reaches_no_job(make_world: MakeWorld, hire: Hire, tmp_path: Path) -> None:
    secret = tmp_path / "credentials"
    secret.mkdir()
    (secret / "token").write_text("sesame\n")
    manager = hire(watchdog=WATCHDOG)
    code = tmp_path / "code"
    code.mkdir()
    (code / "seen.py").write_text("import os\ndef environment(payload):\n    return dict(os.environ)\n")
    text = f"""
defaults: {{timezone: UTC}}
jobs:
  shell: {{command: "env > {tmp_path}/seen", secrets: {{TOKEN: {{file: {secret}/token}}}}}}
  python: {{call: "seen:environment", workdir: {code}}}
"""
    theirs = {"CREDENTIALS_DIRECTORY": str(secret), "LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"}
    theirs |= manager.environment | {"WATCHDOG_PID": "1", "INVOCATION_ID": "x", "JOURNAL_STREAM": "1:2"}
    world = make_world(text, **theirs)
    world.start()
    run(world, "shell")
    called = run(world, "python")
    wait_for(lambda: [r.status for r in world.read_ledger()[0]] == ["COMPLETED"] * 2, 30, "both jobs ran")
    shell = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines())
    python = json.loads(world.get(f"/v1/runs/{called}")[1])["result"]
    assert shell["TOKEN"] == "sesame"
    for seen in (shell, python):
        assert seen["PATH"]
        assert not set(theirs) & set(seen)
        assert not [name for name in seen if name.startswith("SCHEDULER_")]
    assert world.stop() == 0


def test_a_loop_that_hangs_in_a_real_daemon_ends_the_pings(make_world: MakeWorld, hire: Hire, tmp_path: Path) -> None:
    manager = hire(watchdog=WATCHDOG)
    world = make_world(JOBS, **manager.environment)
    hang = tmp_path / "hang"
    launch(world, "tests.systemd.hanging", str(hang))
    assert world.daemon is not None
    manager.wait(lambda m: "READY" in m, 60)
    manager.wait(lambda m: "WATCHDOG" in m)
    hang.touch()
    wait_for(lambda: '"loops_hang"' in world.tail(), 3 * WATCHDOG, "the daemon notices that its planner hangs")
    pings = len(manager.times("WATCHDOG"))
    threading.Event().wait(WATCHDOG / 4 + 1)
    assert len(manager.times("WATCHDOG")) == pings
    assert world.daemon.poll() is None
    hang.unlink()
    wait_for(lambda: len(manager.times("WATCHDOG")) > pings, 10, "the pings come back with the planner")
    assert world.stop() == 0


def test_a_database_that_is_locked_for_long_does_not_end_the_pings(make_world: MakeWorld, hire: Hire) -> None:
    manager = hire(watchdog=WATCHDOG)
    world = make_world(JOBS, **manager.environment)
    # It is the beats that want to write here: every second instead of every ten.
    launch(world, "tests.tuned", "scheduler.engine.beats.LONGEST_INTERVAL=1")
    manager.wait(lambda m: "READY" in m, 60)
    other = sqlite3.connect(world.state / "scheduler.db", isolation_level=None, timeout=30)
    other.execute("BEGIN IMMEDIATE")
    manager.wait(lambda m: "locked" in m.get("STATUS", ""), 30)
    fed_beyond_a_hang(manager, time.monotonic())
    other.execute("ROLLBACK")
    other.close()
    heard = len(manager.messages())
    manager.wait(lambda m: m.get("STATUS") == "2 jobs, none running", since=heard)
    times = manager.times("WATCHDOG")
    assert max(later - earlier for earlier, later in pairwise(times)) < WATCHDOG
    assert world.stop() == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which can be frozen."""
    if os.geteuid() != 0:
        pytest.skip("LOUDLY: only root can mount a file system; run as root (CI does) to test a disk that stalls")
    image, place = tmp_path / "image", tmp_path / "disk"
    image.touch()
    os.truncate(image, 64 << 20)
    place.mkdir()
    for command in (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)]):
        try:
            made = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip(
                f"LOUDLY: there is no {command[0]} here, so no disk stalls; apt-get install e2fsprogs brings it"
            )
        if made.returncode != 0:
            pytest.skip(f"LOUDLY: this machine mounts no file: {made.stderr.strip()}")
    yield place
    subprocess.run(["fsfreeze", "--unfreeze", str(place)], capture_output=True)
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.crash
def test_a_disk_that_stalls_ends_neither_the_pings_nor_a_child(make_world: MakeWorld, hire: Hire, disk: Path) -> None:
    """The loops hang in the middle of a commit; no restart would get them out of there."""
    manager = hire(watchdog=WATCHDOG)
    jobs = JOBS.replace("sleep 60", f"sleep 2; touch {disk.parent}/rested")
    world = make_world(jobs, SCHEDULER_STATE_DIR=str(disk), **manager.environment)
    world.state = disk
    launch(world)
    assert world.daemon is not None
    manager.wait(lambda m: "READY" in m, 60)
    run(world, "long")
    manager.wait(lambda m: m.get("STATUS") == "2 jobs, 1 running")
    subprocess.run(["fsfreeze", "--freeze", str(disk)], check=True)
    try:
        wait_for((disk.parent / "rested").exists, 3 * WATCHDOG, "the child goes on and ends by itself")
        tasks = Path(f"/proc/{world.daemon.pid}/task")
        wait_for(lambda: b"D" in [state(task) for task in tasks.iterdir()], 10, "settling it hangs in the commit")
        fed_beyond_a_hang(manager, time.monotonic())
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(disk)], check=True)
    times = manager.times("WATCHDOG")
    assert max(later - earlier for earlier, later in pairwise(times)) < WATCHDOG
    heard = len(manager.messages())
    manager.wait(lambda m: m.get("STATUS") == "2 jobs, none running", since=heard)
    assert [row.status for row in world.read_ledger()[0]] == ["COMPLETED"]
    assert world.stop() == 0


def state(task: Path) -> bytes:
    return task.joinpath("stat").read_bytes().rpartition(b") ")[2][:1]
