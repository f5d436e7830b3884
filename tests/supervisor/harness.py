"""A supervisor in the hands of a test, and eyes for what it leaves behind."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from scheduler.core.children import ChildSpec
from scheduler.supervisor import processes
from scheduler.supervisor.client import SupervisorClient
from scheduler.supervisor.events import Event, Exited, SpawnFailed
from scheduler.supervisor.nearness import near_program

NODE = "node-1"
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
PATIENCE = 20.0

STUBBORN = "trap '' TERM; "

_E = TypeVar("_E", bound=Event)
_tokens = itertools.count(1)


def token() -> str:
    """A number of seconds to sleep that no other process on the machine sleeps."""
    return f"{7000 + next(_tokens)}.{os.getpid()}{time.monotonic_ns() % 1_000_000:06d}"


def escapees(mark: str) -> str:
    """Shell text that leaves four sleepers: in the background, in a session of its own, without an environment,
    and forked twice; it goes on when all of them are there."""
    return (
        f"sleep {mark} & setsid sleep {mark} & env -i setsid /bin/sleep {mark} & "
        f"(setsid sh -c '(env -i setsid /bin/sleep {mark} &)' &) ; "
        f"until [ $(pgrep -c -f '^(/bin/)?sleep {mark}$') -ge 4 ]; do :; done; "
    )


def stubborn_child(mark: str) -> str:
    """Shell text that leaves one in its own session that ignores TERM already when the text goes on."""
    loop = f"{STUBBORN} echo on; : > on; while :; do sleep {mark}; done"
    return f'setsid sh -c "{loop}" & until [ -e on ]; do :; done;'


def alive(mark: str) -> list[int]:
    """Living processes with this token in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            line = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            found.append(int(name))
    return found


def zombies_of(pid: int) -> list[int]:
    """Children of this process that nobody has reaped."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] == "Z" and int(fields[1]) == pid:
                found.append(int(name))
    return found


def wait_until(condition: Callable[[], Any], timeout: float = PATIENCE) -> Any:
    """The first true value of `condition`, looked at every 10 ms."""
    until = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"not within {timeout} s: {condition}")
        select.select([], [], [], 0.01)
    return value


def near_of(spec: ChildSpec) -> str | None:
    try:
        return near_program(spec.argv[0], spec.env.get("PATH", os.defpath), spec.cwd)
    except (OSError, ValueError):
        return None


class Harness:
    """One client, its events by run, and an output file per run."""

    def __init__(self, folder: Path, *, cgroup: str | None = None, trusted: bool = True, spawns: bool = True) -> None:
        """`spawns`: what lies on local disks is said to do so."""
        self.folder = folder
        self.spawns = spawns
        self.state = folder / "state"
        self.state.mkdir(exist_ok=True)
        self.inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.events: list[Event] = []
        with open(self.state / "lock", "w") as lock:
            self.client = SupervisorClient(
                NODE, self.state, self.inbox.put, cgroup=cgroup, lock_fds=(lock.fileno(),)
            ).open()
        if trusted:
            self.client.trust(None, None)

    def spec(self, run: str, *argv: str, **more: Any) -> ChildSpec:
        values: dict[str, Any] = {
            "attempt": 1,
            "node": NODE,
            "cwd": str(self.folder),
            "env": ENV,
            "kill_after": 10.0,
        } | more
        return ChildSpec(run=run, argv=argv, **values)

    def start(
        self, run: str, *argv: str, stdin_fd: int | None = None, near: str | None = None, **more: Any
    ) -> ChildSpec:
        spec = self.spec(run, *argv, **more)
        fd = os.open(self.folder / f"{run}.out", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            near = near or (near_of(spec) if self.spawns else None)
            self.client.start(spec, output_fd=fd, stdin_fd=stdin_fd, near=near)
        finally:
            os.close(fd)
        return spec

    def sh(self, run: str, script: str, **more: Any) -> ChildSpec:
        return self.start(run, "/bin/sh", "-c", script, **more)

    def python(self, run: str, script: str, **more: Any) -> ChildSpec:
        return self.start(run, sys.executable, "-I", "-S", "-c", script, **more)

    def output(self, run: str) -> bytes:
        return (self.folder / f"{run}.out").read_bytes()

    def expect(self, kind: type[_E], run: str, timeout: float = PATIENCE) -> _E:
        """The event of this kind about this run; another final event about it is an error."""

        def found() -> Event | None:
            while not self.inbox.empty():
                self.events.append(self.inbox.get())
            about = [event for event in self.events if getattr(event, "run", run) == run]
            hit = next((event for event in about if isinstance(event, kind)), None)
            wrong = [event for event in about if isinstance(event, Exited | SpawnFailed)]
            assert hit is not None or not wrong, wrong
            return hit

        event = wait_until(found, timeout)
        assert isinstance(event, kind)
        return event

    def exited(self, run: str, timeout: float = PATIENCE) -> Exited:
        return self.expect(Exited, run, timeout)

    def pid(self, run: str) -> int:
        """Of the main process, which prints `pid NUMBER`."""
        found = wait_until(lambda: re.search(rb"^pid (\d+)$", self.output(run), re.MULTILINE))
        assert isinstance(found, re.Match)
        return int(found[1])

    def said(self, run: str, text: bytes) -> None:
        """Wait until the child has written this."""
        wait_until(lambda: text in self.output(run))


class Daemon:
    """The daemon of `tests.supervisor.daemon` in a process of its own."""

    def __init__(self, folder: Path, *prefix: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.supervisor.daemon", str(folder)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.supervisor = int(self.expect("ready")["supervisor"])

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.append(json.loads(line))

    def order(self, do: str, **values: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"do": do} | values) + "\n")
        self.process.stdin.flush()

    def sh(self, run: str, script: str) -> None:
        self.order("start", run=run, argv=["/bin/sh", "-c", script])

    def said(self, run: str, text: bytes) -> None:
        path = self.folder / f"{run}.out"
        wait_until(lambda: path.exists() and text in path.read_bytes())

    def expect(self, kind: str, **values: Any) -> dict[str, Any]:
        """The first line of this kind with these values."""
        found = wait_until(
            lambda: next(
                (line for line in self.lines if line["event"] == kind and values.items() <= line.items()), None
            )
        )
        assert isinstance(found, dict)
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe
                pipe.close()
        wait_until(lambda: gone(self.supervisor))


def gone(pid: int) -> bool:
    """No such process, or only its exit status is left."""
    process = processes.read(pid)
    return process is None or process.dead
