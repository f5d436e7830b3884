"""The dead man's switch: whatever happens to daemon, supervisor and trust, nothing is left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from scheduler.core.errors import SupervisorAway
from scheduler.supervisor import client as client_module
from scheduler.supervisor import linux, processes
from scheduler.supervisor.events import SpawnFailed, SupervisorGone
from scheduler.supervisor.state import forget_exits, read_exits
from tests.supervisor.harness import (
    STUBBORN,
    Daemon,
    Harness,
    alive,
    escapees,
    gone,
    token,
    wait_until,
    zombies_of,
)


def test_daemon_killed(daemon: Daemon, tmp_path: Path) -> None:
    mark = token()
    daemon.sh("settled", "exit 1")
    daemon.sh("done", "exit 5")
    daemon.expect("Exited", run="settled")
    daemon.expect("Exited", run="done")
    daemon.order("settled", run="settled")
    daemon.sh("obeys", f"{escapees(mark)} echo on; exec sleep {mark}")
    daemon.sh("traps", f"trap 'exit 0' TERM; echo on; sleep {mark} & wait")
    daemon.said("obeys", b"on")
    daemon.said("traps", b"on")
    daemon.kill()
    wait_until(lambda: gone(daemon.supervisor))
    assert alive(mark) == []
    exits = {exited.run: (exited.code, exited.signal, exited.why) for exited in read_exits(tmp_path / "state")}
    assert exits == {"done": (5, None, None), "obeys": (None, 15, "lost"), "traps": (0, None, "lost")}
    forget_exits(tmp_path / "state")
    assert read_exits(tmp_path / "state") == []


def test_daemon_killed_and_children_ignore_term(daemon: Daemon) -> None:
    mark = token()
    daemon.sh("r", f"{STUBBORN} {escapees(mark)} echo on; while :; do sleep {mark}; done")
    daemon.said("r", b"on")
    daemon.kill()
    before = time.monotonic()
    wait_until(lambda: gone(daemon.supervisor))
    assert alive(mark) == []
    assert 4.5 < time.monotonic() - before < 10


def test_a_stopped_supervisor_wakes_when_its_daemon_dies(daemon: Daemon) -> None:
    mark = token()
    daemon.sh("r", f"{escapees(mark)} echo on; exec sleep {mark}")
    daemon.said("r", b"on")
    os.kill(daemon.supervisor, signal.SIGSTOP)
    wait_until(lambda: (found := processes.read(daemon.supervisor)) and found.state == "T")
    daemon.kill()
    wait_until(lambda: gone(daemon.supervisor))
    assert alive(mark) == []


def test_what_a_killed_supervisor_leaves_falls_to_the_daemon_and_is_ended(daemon: Daemon) -> None:
    mark = token()
    daemon.sh("r", f"{STUBBORN} {escapees(mark)} echo on; while :; do sleep {mark}; done")
    daemon.said("r", b"on")
    os.kill(daemon.supervisor, signal.SIGKILL)
    daemon.expect("SupervisorGone", pid=daemon.supervisor)
    assert len(alive(mark)) >= 3
    daemon.order("replace", kill_after=0.3)
    daemon.supervisor = int(daemon.expect("replaced")["supervisor"])
    assert alive(mark) == []
    assert zombies_of(daemon.process.pid) == []
    daemon.sh("next", "exit 4")
    assert daemon.expect("Exited", run="next")["code"] == 4


def test_orphans_of_the_daemon_itself_are_reaped(daemon: Daemon) -> None:
    daemon.order("orphan")
    daemon.expect("orphaned")
    wait_until(lambda: len(zombies_of(daemon.process.pid)) == 1)
    daemon.order("reap")
    assert daemon.expect("reaped")["count"] == 1
    assert zombies_of(daemon.process.pid) == []


def test_signals_to_the_whole_terminal_do_not_reach_the_supervisor(daemon: Daemon) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1):
        os.kill(daemon.supervisor, number)
    daemon.sh("r", "exit 6")
    assert daemon.expect("Exited", run="r")["code"] == 6


def test_without_room_for_marks_sessions_are_ended_all_the_same(tmp_path: Path) -> None:
    if not shutil.which("prlimit"):
        pytest.skip("NEEDS prlimit (util-linux)")
    daemon = Daemon(tmp_path, "prlimit", "--msgqueue=0:0")
    mark = token()
    daemon.sh("r", f"sleep {mark} & sleep {mark} & exit 3")
    exited = daemon.expect("Exited", run="r")
    assert (exited["code"], exited["left"]) == (3, 2)
    assert alive(mark) == []
    daemon.clean_up()


def test_trust_runs_out(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    mark = token()
    harness.sh("obeys", f"{escapees(mark)} echo on; exec sleep {mark}")
    harness.sh("ignores", f"{STUBBORN} {escapees(token())} echo on; while :; do sleep {mark}; done", kill_after=60)
    harness.said("obeys", b"on")
    harness.said("ignores", b"on")
    now = linux.boottime()
    wall = time.time()
    harness.client.trust(now + 0.4, now + 1.2)
    # Once it has run out there is no way back.
    obeyed = harness.exited("obeys")
    harness.client.trust(None, None)
    killed = harness.exited("ignores")
    assert (obeyed.signal, obeyed.why) == (15, "lost")
    assert (killed.signal, killed.why) == (9, "lost")
    assert obeyed.ended_at - wall > 0.35
    assert 1.15 < killed.ended_at - wall < 4
    # TERM and KILL are two instants, even on a machine that is busy with other things.
    assert obeyed.ended_at < killed.ended_at
    harness.expect(SupervisorGone, "")
    assert alive(mark) == []
    assert {exited.run for exited in read_exits(harness.state)} == {"obeys", "ignores"}
    with pytest.raises(SupervisorAway):
        harness.sh("late", "exit 0")


@pytest.mark.parametrize("harm", ["removed", "full"])
def test_exits_that_cannot_be_left_are_told_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], harm: str
) -> None:
    harness = Harness(tmp_path)
    harness.sh("r", "echo on; exec sleep 1000")
    harness.said("r", b"on")
    if harm == "removed":
        shutil.rmtree(harness.state)
    else:
        (harness.state / "exits.jsonl").symlink_to("/dev/full")
    now = linux.boottime()
    harness.client.trust(now, now)
    assert harness.exited("r").signal in (9, 15)
    harness.expect(SupervisorGone, "")
    why = "No such file or directory" if harm == "removed" else "No space left on device"
    told = f"supervisor: how these runs ended is not known to the next daemon: r: {harness.state}/exits.jsonl: {why}\n"
    assert capfd.readouterr().err == told


def test_silence_is_counted_only_while_somebody_asks(supervisor: Harness) -> None:
    """A daemon that was stopped finds an old answer, or none, when it wakes: neither is the supervisor's fault."""
    client = supervisor.client
    number = client.ping()
    wait_until(lambda: client.answered == number)
    assert client.silent_for == 0
    os.kill(client.pid, signal.SIGSTOP)
    try:
        asked = time.monotonic()
        client.ping()
        wait_until(lambda: time.monotonic() - asked > 0.3)
        assert client.silent_for == 0
        number = client.ping()
        assert 0.3 < client.silent_for <= time.monotonic() - asked
    finally:
        os.kill(client.pid, signal.SIGCONT)
    wait_until(lambda: client.answered == number)
    assert client.silent_for == 0


def test_trust_that_is_extended_ends_nothing(supervisor: Harness) -> None:
    supervisor.sh("r", "until [ -e go ]; do sleep 0.01; done; exit 8")
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        now = linux.boottime()
        supervisor.client.trust(now + 0.5, now + 0.6)
        number = supervisor.client.ping()
        wait_until(lambda: supervisor.client.answered == number)  # noqa: B023
    supervisor.client.trust(None, None)
    (supervisor.folder / "go").touch()
    exited = supervisor.exited("r")
    assert (exited.code, exited.why) == (8, None)


def test_no_start_without_trust(tmp_path: Path) -> None:
    harness = Harness(tmp_path, trusted=False)
    harness.sh("never", "exit 0")
    assert "vouch" in harness.expect(SpawnFailed, "never").what
    now = linux.boottime()
    harness.client.trust(now - 1, now + 5)
    harness.sh("late", "exit 0")
    assert harness.expect(SpawnFailed, "late").stage == "refused"
    # Nothing was running, so nothing had to end, and a renewal makes it good again.
    harness.client.trust(now + 60, now + 70)
    harness.sh("good", "exit 0")
    assert harness.exited("good").code == 0
    assert harness.client.close()


def test_after_the_socket_has_closed_an_earlier_end_of_trust_still_counts(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.sh("r", f"{STUBBORN} echo on; while :; do sleep {token()}; done")
    harness.said("r", b"on")
    now = linux.boottime()
    harness.client.trust(now + 60, now + 0.5)
    before = time.monotonic()
    assert harness.client.close()
    assert harness.exited("r").signal == 9
    assert time.monotonic() - before < 4


def test_a_socket_that_closes_later_gives_no_respite(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.sh("r", f"trap 'echo term' TERM; echo on; while :; do sleep {token()}; done", kill_after=60)
    harness.said("r", b"on")
    now = linux.boottime()
    harness.client.trust(now + 0.2, now + 1.0)
    harness.said("r", b"term")
    before = time.monotonic()
    assert harness.client.close()
    assert harness.exited("r").signal == 9
    assert time.monotonic() - before < 4


def test_a_silent_supervisor_is_noticed_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_SEND_WITHIN", 0.3)
    harness = Harness(tmp_path)
    os.kill(harness.client.pid, signal.SIGSTOP)
    answered = harness.client.answered_at
    large = harness.spec("r", "true", *["x" * 100_000] * 9)

    def fill() -> None:
        for _ in range(100):
            harness.client.start(large, output_fd=1)

    with pytest.raises(SupervisorAway, match="does not read"):
        fill()
    assert harness.client.answered_at == answered
    harness.client.kill()
    assert "-9" in harness.expect(SupervisorGone, "").reason
    with pytest.raises(SupervisorAway, match="gone"):
        harness.client.ping()


def test_it_opens_nothing_that_could_wait_for_a_disk(supervisor: Harness, tmp_path: Path) -> None:
    """Stands in for a stalled file system: the supervisor itself touches nothing outside /proc but what is known to lie
    on a local disk, and waits nowhere."""
    if not shutil.which("strace"):
        pytest.skip("NEEDS strace")
    trace = tmp_path / "trace"
    supervisor.sh("warm", f"sleep {token()} & exit 1")
    supervisor.exited("warm")
    calls = "trace=file,openat,chdir,fchdir,wait4,fsync,execve,futex"
    tracer = subprocess.Popen(
        ["strace", "-o", str(trace), "-e", calls, "-p", str(supervisor.client.pid)], stderr=subprocess.PIPE
    )
    assert tracer.stderr
    if b"attached" not in tracer.stderr.readline():
        tracer.wait()
        tracer.stderr.close()
        pytest.skip("NEEDS the right to trace")
    supervisor.start("lost", "no-such-command")
    supervisor.start("cwd", "true", cwd="/nowhere")
    supervisor.expect(SpawnFailed, "lost")
    supervisor.expect(SpawnFailed, "cwd")
    mark = token()
    supervisor.sh("r", f"{STUBBORN} {escapees(mark)} echo on; while :; do sleep {mark}; done")
    supervisor.said("r", b"on")
    supervisor.client.end("r", "timeout", 0.2)
    supervisor.exited("r")
    tracer.terminate()
    tracer.wait()
    tracer.stderr.close()
    lines = [line for line in trace.read_text().splitlines() if not line.startswith(("---", "+++", "strace"))]
    opened = {found[1] for line in lines if (found := re.search(r'"([^"]*)"', line))}
    assert opened
    near = {str(tmp_path), "/"} if supervisor.spawns else set()
    assert {path for path in opened if path and not path.startswith("/proc/")} == near
    entered = [line for line in lines if line.startswith("chdir")]
    assert len(entered) == 2 * bool(near)
    assert [line for line in lines if line.startswith("wait4") and "WNOHANG" not in line] == []
    assert [line for line in lines if line.startswith(("futex", "fsync", "execve"))] == []
