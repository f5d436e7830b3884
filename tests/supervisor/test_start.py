"""What a child gets, and what its exit says."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.children import ChildUser as User
from scheduler.core.errors import InvalidInput
from scheduler.core.job import Limits
from scheduler.supervisor import processes
from scheduler.supervisor.events import SpawnFailed
from tests.supervisor.harness import ENV, Harness, wait_until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NEEDS ROOT: only root may start children as other users")

LOOK = """
import json, os, resource, signal
status = open('/proc/self/status').read()
mask = lambda name: int(next(l for l in status.splitlines() if l.startswith(name)).split()[1], 16)
print(json.dumps({
    'fds': sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')),
    'stdin': os.readlink('/proc/self/fd/0'),
    'env': dict(os.environ),
    'cwd': os.getcwd(),
    'session': os.getsid(0) == os.getpid() == os.getpgid(0),
    'blocked': mask('SigBlk'),
    'ignored': mask('SigIgn'),
    'oom': int(open('/proc/self/oom_score_adj').read()),
    'nofile': resource.getrlimit(resource.RLIMIT_NOFILE),
    'nice': os.getpriority(os.PRIO_PROCESS, 0),
    'memory': resource.getrlimit(resource.RLIMIT_AS)[0],
    'tasks': resource.getrlimit(resource.RLIMIT_NPROC)[0],
    'ids': [os.getresuid(), os.getresgid(), os.getgroups()],
}))
"""
PYTHON_IGNORES = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
# glibc's posix_spawn, which newer interpreters start the supervisor with, ignores the two signals it keeps for itself;
# nobody can set them otherwise, and a program that needs them sets them anew.
OF_GLIBC = 1 << 31 | 1 << 32


def look(supervisor: Harness, **more: Any) -> dict[str, object]:
    supervisor.python("look", LOOK, **more)
    assert supervisor.exited("look").code == 0, supervisor.output("look")
    found = json.loads(supervisor.output("look"))
    assert isinstance(found, dict)
    return found


def ignored(found: dict[str, object]) -> int:
    mask = found["ignored"]
    assert isinstance(mask, int)
    return mask & ~OF_GLIBC


def test_a_child_gets_exactly_what_it_should(supervisor: Harness, tmp_path: Path) -> None:
    secret = os.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(secret, True)
    odd = {"x.y": "names that no shell carries", "EMPTY": "", "PATH": "/nowhere", "LINES": "a\nb", "U": "ü\udcff"}
    found = look(supervisor, env=odd)
    os.close(secret)
    env = found["env"]
    assert isinstance(env, dict)
    # An interpreter without a locale adds LC_CTYPE to its own environment.
    assert env.pop("LC_CTYPE", None) in (None, "C.UTF-8")
    assert env == odd
    assert found["fds"] == [0, 1, 2]
    assert found["stdin"] == "/dev/null"
    assert found["cwd"] == str(tmp_path)
    assert found["session"] is True
    assert found["blocked"] == 0
    assert ignored(found) == PYTHON_IGNORES
    assert found["oom"] == min(1000, int(Path("/proc/self/oom_score_adj").read_text()) + 500)
    assert found["memory"] == -1


def test_a_child_sees_no_descriptor_of_the_supervisor(supervisor: Harness) -> None:
    supervisor.sh("list", "exec ls -l /proc/self/fd")
    assert supervisor.exited("list").code == 0
    targets = sorted(line.rsplit(b" -> ", 1)[1] for line in supervisor.output("list").splitlines()[1:])
    assert [target.split(b"/")[-1] for target in targets] == [b"null", b"fd", b"list.out", b"list.out"]


def test_signals_ignored_in_the_daemon_are_not_ignored_in_children(tmp_path: Path) -> None:
    former = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        harness = Harness(tmp_path)
        assert ignored(look(harness)) == PYTHON_IGNORES
        assert harness.client.close()
    finally:
        signal.signal(signal.SIGUSR2, former)


def test_exit_codes_are_not_lost_when_sigchld_was_ignored(tmp_path: Path) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    harness = Harness(tmp_path)
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
    harness.sh("r", "exit 3")
    assert harness.exited("r").code == 3
    assert harness.client.close()


def test_stdin_and_channel(supervisor: Harness, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\x00\xff no newline")
    fd = os.open(tmp_path / "in", os.O_RDONLY)
    supervisor.start("cat", "cat", stdin_fd=fd)
    os.close(fd)
    assert supervisor.exited("cat").code == 0
    assert supervisor.output("cat") == b"\x00\xff no newline"

    supervisor.sh("read", "read x; echo got:$x:$?")
    assert supervisor.exited("read").code == 0
    assert supervisor.output("read") == b"got::1\n"

    import socket

    ours, theirs = socket.socketpair()
    out = os.open(tmp_path / "channel.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    spec = supervisor.spec("channel", "/bin/sh", "-c", "echo hello >&3; ls /proc/self/fd")
    supervisor.client.start(spec, output_fd=out, channel_fd=theirs.fileno())
    os.close(out)
    theirs.close()
    assert supervisor.exited("channel").code == 0
    with ours:
        assert ours.recv(100) == b"hello\n"
        assert ours.recv(100) == b""


@pytest.mark.parametrize(
    ("script", "code", "killed_by"),
    [
        ("exit 0", 0, None),
        ("exit 7", 7, None),
        ("exit 137", 137, None),
        ("exit 256", 0, None),
        ("kill -9 $$", None, 9),
        ("kill -TERM $$", None, 15),
        ("sh -c 'kill -9 $$'; exit $?", 137, None),
    ],
)
def test_exits(supervisor: Harness, script: str, code: int | None, killed_by: int | None) -> None:
    supervisor.sh("r", script)
    exited = supervisor.exited("r")
    assert (exited.code, exited.signal, exited.why, exited.left) == (code, killed_by, None, 0)
    assert exited.node == "node-1"
    assert exited.attempt == 1


def test_usage_is_that_of_the_run(supervisor: Harness) -> None:
    supervisor.python("busy", "x = bytearray(80_000_000)\nfor i in range(3_000_000): pass")
    usage = supervisor.exited("busy").usage
    assert usage["user"] > 0.02
    assert usage["max_rss"] > 80_000_000


def test_limits(supervisor: Harness) -> None:
    hundred = 100 * 1024 * 1024
    found = look(supervisor, limits=Limits(memory=hundred, tasks=50, nice=5))
    assert (found["memory"], found["tasks"], found["nice"]) == (hundred, 50, 5)
    supervisor.python("big", "bytearray(200_000_000)", limits=Limits(memory=hundred))
    assert supervisor.exited("big").code == 1
    assert b"MemoryError" in supervisor.output("big")


@as_root
def test_user(supervisor: Harness) -> None:
    supervisor.sh("r", "id -G; grep -E '^(Uid|Gid)' /proc/self/status", user=User(65534, 12, (12, 65534)), cwd="/")
    assert supervisor.exited("r").code == 0
    four = b"\t".join([b"%d"] * 4)
    expected = b"12 65534\nUid:\t" + four % ((65534,) * 4) + b"\nGid:\t" + four % ((12,) * 4) + b"\n"
    assert supervisor.output("r") == expected


@as_root
def test_a_run_of_another_user_is_ended_like_any_other(supervisor: Harness) -> None:
    supervisor.sh("u", "trap '' TERM; setsid sleep 6001 & echo on; wait", user=User(65534, 65534), cwd="/")
    supervisor.said("u", b"on")
    supervisor.client.end("u", "timeout", 0.2)
    exited = supervisor.exited("u")
    assert (exited.why, exited.signal) == ("timeout", 9)


def test_many_bytes_of_any_kind_never_block(supervisor: Harness) -> None:
    supervisor.sh("long", "head -c 20000000 /dev/urandom; head -c 3000000 /dev/zero | tr '\\0' x; exit 4")
    assert supervisor.exited("long").code == 4
    assert len(supervisor.output("long")) == 23_000_000
    assert supervisor.output("long").endswith(b"xxxx")


def test_a_thousand_at_once_and_answers_between(supervisor: Harness) -> None:
    for number in range(800):
        supervisor.sh(f"r{number}", f"exit {number % 256}")
    os.kill(supervisor.client.pid, signal.SIGSTOP)
    for number in range(800, 1000):
        supervisor.sh(f"r{number}", f"exit {number % 256}")
    number = supervisor.client.ping()
    os.kill(supervisor.client.pid, signal.SIGCONT)
    # The answer overtakes the starts that were asked for before.
    wait_until(lambda: supervisor.client.answered == number)
    assert supervisor.inbox.qsize() < 1000
    for number in range(1000):
        exited = supervisor.exited(f"r{number}", 60)
        assert (exited.code, exited.left) == (number % 256, 0)
    assert len(supervisor.events) == 1000


def test_the_mark_survives_everything(supervisor: Harness) -> None:
    own = processes.mark_of(os.getpid())
    supervisor.sh("a", "env -i /usr/bin/setsid /bin/cat /proc/self/limits; exit 0")
    supervisor.exited("a")
    line = next(line for line in supervisor.output("a").splitlines() if b"msgqueue" in line)
    assert own is not None
    assert int(line.split()[3]) == own - 1


def test_what_cannot_be_sent_is_refused_at_once(supervisor: Harness) -> None:
    with pytest.raises(InvalidInput, match=r"take [\d,]+ bytes; at most"):
        supervisor.client.start(supervisor.spec("huge", "true", env={"X": "x" * 5_000_000}), output_fd=1)
    with pytest.raises(InvalidInput, match="NUL"):
        supervisor.client.start(supervisor.spec("nul", "true", "a\0b"), output_fd=1)
    with pytest.raises(InvalidInput, match="empty"):
        supervisor.client.start(supervisor.spec("none"), output_fd=1)
    with pytest.raises(InvalidInput, match="not absolute"):
        supervisor.client.start(supervisor.spec("here", "true", cwd="."), output_fd=1)
    supervisor.start("large", "true", env=ENV | {f"X{n}": "x" * 100_000 for n in range(10)})
    assert supervisor.exited("large").code == 0


def test_a_start_for_another_node_is_refused(supervisor: Harness) -> None:
    supervisor.start("r", "true", node="node-2")
    failed = supervisor.expect(SpawnFailed, "r")
    assert failed.stage == "refused"
    assert "node-1, not node-2" in failed.what


def test_a_run_that_lives_is_not_started_twice(supervisor: Harness, tmp_path: Path) -> None:
    supervisor.sh("r", "echo on; exec sleep 6002")
    supervisor.said("r", b"on")
    (tmp_path / "r.out").rename(tmp_path / "first.out")
    supervisor.sh("r", "echo second", attempt=2)
    failed = supervisor.expect(SpawnFailed, "r")
    assert "alive already" in failed.what
    assert supervisor.output("r") == b""


def test_the_supervisor_is_small_and_alone(supervisor: Harness) -> None:
    status = Path(f"/proc/{supervisor.client.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["Threads"]) == 1
    assert int(fields["VmRSS"].split()[0]) < 25_000
    maps = Path(f"/proc/{supervisor.client.pid}/maps").read_text()
    assert "sqlite" not in maps
    assert "_ssl" not in maps
    assert Path(f"/proc/{supervisor.client.pid}/environ").read_bytes().count(b"=") <= 1
    assert os.path.realpath(f"/proc/{supervisor.client.pid}/exe") == os.path.realpath(sys.executable)
