"""The state directory: who holds it, who held it before, and the exits that a supervisor could not report.

The lock is one flock, shared by a daemon and its supervisor: whoever gets it knows that both of the former
are gone.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scheduler.core.errors import StartError
from scheduler.core.value_object import value_object
from scheduler.supervisor import linux, processes
from scheduler.supervisor.events import Exited
from scheduler.supervisor.loop import EXITS_FILE
from scheduler.supervisor.processes import Process

_LOCK_FILE = "lock"
_HOLDER_FILE = "holder.json"
_PATIENCE = 15.0  # seconds that a holder without a daemon gets before SIGKILL
_ROUND = 0.05


@value_object
class Former:
    """Who held the directory before. `since`: CLOCK_BOOTTIME of its daemon's start, None after a reboot."""

    node: str | None
    since: float | None


class StateLock:
    """The hold on a state directory; `fd` is inherited by the supervisor, and the lock lasts as long as
    either.
    """

    def __init__(self, directory: Path, fd: int, former: Former) -> None:
        self.directory = directory
        self.fd = fd
        self.former = former

    @classmethod
    def acquire(
        cls, directory: Path, *, patience: float = _PATIENCE, say: Callable[[str], None] = lambda _text: None
    ) -> StateLock:
        """Take the directory, made 0700 if absent.

        Held by a daemon that runs: StartError naming its pid. Held by a supervisor whose daemon is gone, or
        by a stopped daemon: `say` gets a sentence with the pid, it gets SIGCONT, and after `patience`
        seconds SIGKILL, if it still is the process that took the lock (start time and boot).
        """
        fd = open_lock_file(directory / _LOCK_FILE)
        try:
            _take(fd, directory, patience, say)
        except BaseException:
            os.close(fd)
            raise
        holder = _read_holder(directory)
        same_boot = holder.get("boot") == linux.boot_id()
        lock = cls(directory, fd, Former(holder.get("node"), holder.get("since") if same_boot else None))
        # Until this daemon has a node id, the former one is still the one to be declared dead.
        lock.record(lock.former.node, since=lock.former.since)
        return lock

    def record(self, node: str | None, *, supervisor_pid: int | None = None, since: float | None = None) -> None:
        """Write down, atomically, who holds the directory from now on: this process, its node and
        supervisor.
        """
        pids = {"daemon": os.getpid(), "supervisor": supervisor_pid}
        found = {name: processes.read(pid) for name, pid in pids.items() if pid is not None}
        holder: dict[str, Any] = {"boot": linux.boot_id(), "node": node}
        holder |= {name: [process.pid, process.started] for name, process in found.items() if process}
        daemon = found["daemon"]
        started = daemon.started / os.sysconf("SC_CLK_TCK") if daemon else linux.boottime()
        holder["since"] = started if since is None else since
        _write(self.directory / _HOLDER_FILE, json.dumps(holder))

    def release(self) -> None:
        """Let go of this process's hold; the supervisor's lasts until it ends."""
        os.close(self.fd)


def open_lock_file(path: Path) -> int:
    """A descriptor of the file, made (0600, its directory 0700) if absent. StartError that says why not."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(
            f"{path.parent} cannot be used: {os.strerror(error.errno or 0)} ({error.filename})",
            hint="make it a directory that this user can write, or set SCHEDULER_STATE_DIR",
        ) from None


def try_lock(fd: int) -> bool:
    """Whether this file is locked now, by this process."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_exits(directory: Path) -> list[Exited]:
    """The exits that former supervisors could not report; a line that was cut short is passed over."""
    try:
        lines = (directory / EXITS_FILE).read_text("ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            message = json.loads(line)
            message.pop("type")
            found.append(Exited(**message))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return found


def forget_exits(directory: Path) -> None:
    """They are settled."""
    (directory / EXITS_FILE).unlink(missing_ok=True)


def _take(fd: int, directory: Path, patience: float, say: Callable[[str], None]) -> None:
    until = time.monotonic() + patience
    said: set[int] = set()
    while not try_lock(fd):
        holders = _living_holders(directory)
        daemon = holders.get("daemon")
        if daemon and daemon.pid not in said and daemon.state not in "Tt":
            raise StartError(f"{directory} is in use by the daemon with pid {daemon.pid}", hint="stop it first")
        for name, process in holders.items():
            if process.pid not in said:
                said.add(process.pid)
                say(f"{directory} is held by the {name} with pid {process.pid}; it gets {patience:g} s")
                processes.send(process, signal.SIGCONT)
        if time.monotonic() >= until:
            # The daemon first: its supervisor then ends the children in an orderly way.
            name = "daemon" if daemon else "supervisor"
            if name not in holders:
                raise StartError(f"{directory} is held by an unknown process", hint="see /proc/locks")
            say(f"killing the {name} with pid {holders[name].pid}, which still holds {directory}")
            processes.send(holders[name], signal.SIGKILL)
            until = time.monotonic() + patience
        time.sleep(_ROUND)


def _living_holders(directory: Path) -> dict[str, Process]:
    """Those named in the holder file that still are the processes they were."""
    holder = _read_holder(directory)
    found: dict[str, Process] = {}
    if holder.get("boot") != linux.boot_id():
        return found
    for name in ("daemon", "supervisor"):
        try:
            pid, started = holder[name]
        except (KeyError, TypeError, ValueError):
            continue
        process = processes.read(pid)
        if process and process.started == started and not process.dead:
            found[name] = process
    return found


def _read_holder(directory: Path) -> dict[str, Any]:
    try:
        holder = json.loads((directory / _HOLDER_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, text.encode("ascii"))
        os.fsync(fd)
    except OSError as error:
        os.unlink(draft)
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(fd)
    os.replace(draft, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
