"""Who holds a state directory, and what a new daemon finds in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.core.errors import StartError
from scheduler.supervisor import linux, processes
from scheduler.supervisor.state import StateLock, read_exits
from tests.supervisor.harness import Daemon, alive, gone, token, wait_until

HOLD = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


class Holder:
    """A process that holds the lock and does nothing else."""

    def __init__(self, state: Path) -> None:
        state.mkdir(exist_ok=True)
        self.state = state
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", HOLD, str(state / "lock")], stdout=subprocess.PIPE
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == b"held\n"

    def sign(self, name: str, *, late: int = 0) -> None:
        found = processes.read(self.process.pid)
        assert found
        holder = {"boot": linux.boot_id(), "node": "old", name: [found.pid, found.started + late], "since": 1.0}
        (self.state / "holder.json").write_text(json.dumps(holder))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    holding = Holder(tmp_path / "state")
    yield holding
    holding.process.kill()
    holding.process.wait()
    assert holding.process.stdout
    holding.process.stdout.close()


def test_first_and_next(tmp_path: Path) -> None:
    state = tmp_path / "a" / "b"
    lock = StateLock.acquire(state)
    assert state.stat().st_mode & 0o777 == 0o700
    assert (lock.former.node, lock.former.since) == (None, None)
    lock.record("node-1", supervisor_pid=os.getpid())
    lock.release()
    lock = StateLock.acquire(state)
    own = processes.read(os.getpid())
    assert own
    assert lock.former.node == "node-1"
    assert lock.former.since == own.started / os.sysconf("SC_CLK_TCK")
    # A daemon that dies before it has a node id leaves the former one to be found.
    lock.release()
    lock = StateLock.acquire(state)
    assert lock.former.node == "node-1"
    lock.release()


def test_after_a_reboot_nothing_can_be_left(tmp_path: Path) -> None:
    (tmp_path / "holder.json").write_text(json.dumps({"boot": "another", "node": "old", "since": 5.0}))
    lock = StateLock.acquire(tmp_path)
    assert (lock.former.node, lock.former.since) == ("old", None)
    lock.release()


@pytest.mark.parametrize("text", ["", '{"boot": ', "[]", "null"])
def test_a_torn_holder_file_is_no_obstacle(tmp_path: Path, text: str) -> None:
    (tmp_path / "holder.json").write_text(text)
    lock = StateLock.acquire(tmp_path)
    assert lock.former.node is None
    lock.release()


def test_a_running_daemon_is_not_disturbed(daemon: Daemon, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=f"in use by the daemon with pid {daemon.process.pid}"):
        StateLock.acquire(tmp_path / "state", patience=0)
    daemon.sh("r", "exit 2")
    assert daemon.expect("Exited", run="r")["code"] == 2


def test_the_lock_lasts_until_the_supervisor_has_ended_everything(daemon: Daemon, tmp_path: Path) -> None:
    mark = token()
    daemon.sh("r", f"trap 'sleep 0.3; exit 0' TERM; echo on; while :; do setsid sleep {mark}; done")
    daemon.said("r", b"on")
    daemon.kill()
    said: list[str] = []
    lock = StateLock.acquire(tmp_path / "state", say=said.append)
    assert gone(daemon.supervisor)
    assert alive(mark) == []
    assert f"supervisor with pid {daemon.supervisor}" in said[0]
    assert [exited.why for exited in read_exits(tmp_path / "state")] == ["lost"]
    assert lock.former.node == "node-1"
    lock.release()


def test_children_do_not_hold_the_lock(daemon: Daemon, tmp_path: Path) -> None:
    daemon.sh("r", "ls -l /proc/self/fd; exec 1>&- 2>&-; exec sleep 600")
    daemon.said("r", b"fd")
    assert b"lock" not in (tmp_path / "r.out").read_bytes()


@pytest.mark.parametrize("name", ["supervisor", "daemon"])
def test_a_stopped_holder_is_woken_then_killed(holder: Holder, name: str) -> None:
    holder.sign(name)
    holder.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: (found := processes.read(holder.process.pid)) and found.state == "T")
    said: list[str] = []
    lock = StateLock.acquire(holder.state, patience=0.3, say=said.append)
    assert holder.process.wait() == -signal.SIGKILL
    assert f"held by the {name} with pid {holder.process.pid}" in said[0]
    assert "killing" in said[1]
    lock.release()


def test_a_holder_that_wakes_may_end_by_itself(holder: Holder) -> None:
    holder.sign("supervisor")
    holder.process.send_signal(signal.SIGSTOP)
    holder.process.send_signal(signal.SIGTERM)
    lock = StateLock.acquire(holder.state, patience=15)
    assert holder.process.wait() == -signal.SIGTERM
    lock.release()


def test_a_stranger_with_the_number_of_a_holder_is_not_killed(holder: Holder) -> None:
    holder.sign("supervisor", late=1)
    with pytest.raises(StartError, match="unknown process"):
        StateLock.acquire(holder.state, patience=0.2)
    assert holder.process.poll() is None


def test_exits_are_read_up_to_a_torn_line(tmp_path: Path) -> None:
    good = {"type": "exited", "run": "r", "attempt": 2, "node": "n", "code": 3, "signal": None, "why": None, "left": 0}
    lines = [json.dumps(good | {"usage": {"user": 1.0}, "ended_at": 5.0}), '{"type": "exited", "ru']
    (tmp_path / "exits.jsonl").write_text("\n".join(lines))
    (exited,) = read_exits(tmp_path)
    assert (exited.run, exited.attempt, exited.code, exited.ended_at) == ("r", 2, 3, 5.0)
