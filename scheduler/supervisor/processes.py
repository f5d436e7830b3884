"""Processes as /proc shows them. Nothing here opens a file that can wait for a disk or for another process.

Every signal goes through a pidfd and only after the process behind it has proved to be the one that was
seen: a number that the kernel has given to somebody else in the meantime is never hit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from scheduler.core.value_object import value_object


@value_object
class Process:
    """One process at the moment it was read; `started` is in clock ticks since boot (/proc/PID/stat, field
    22).
    """

    pid: int
    parent: int
    group: int
    session: int
    started: int
    state: str
    threads: int

    @property
    def dead(self) -> bool:
        """Only its exit status is left (a process can live on without its main thread)."""
        return self.state in "ZX" and self.threads <= 1


def read(pid: int) -> Process | None:
    """The process with this number, or None when there is none (any more)."""
    data = _content(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name stands in parentheses and may contain blanks and parentheses itself.
    fields = data[data.rindex(b")") + 2 :].split()
    parent, group, session, threads, started = (int(fields[index]) for index in (1, 2, 3, 17, 19))
    return Process(pid, parent, group, session, started, fields[0].decode("ascii"), threads)


def mark_of(pid: int) -> int | None:
    """The soft RLIMIT_MSGQUEUE of a process; None when it is unlimited or the process is gone."""
    for line in _content(f"/proc/{pid}/limits").splitlines():
        if line.startswith(b"Max msgqueue size"):
            soft = line.split()[3]
            return int(soft) if soft.isdigit() else None
    return None


def children_of(pid: int) -> list[int]:
    """Direct children, zombies included; exact only while their parent is not reaping."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []
    found: list[int] = []
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
        except ProcessLookupError:
            continue
        except FileNotFoundError:
            if not _KERNEL_LISTS_CHILDREN:
                return [process.pid for process in everyone() if process.parent == pid]
    return found


def everyone() -> list[Process]:
    """Every process that this user may see."""
    return [found for name in os.listdir("/proc") if name.isdigit() and (found := read(int(name)))]


def below(roots: Iterable[int]) -> list[Process]:
    """These processes and all their living descendants, parents before children."""
    found: dict[int, Process] = {}
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid in found or (process := read(pid)) is None:
            continue
        found[pid] = process
        if not process.dead:
            todo += children_of(pid)
    return [process for process in found.values() if not process.dead]


def send(process: Process, number: int) -> bool:
    """Signal exactly this process; False when it is gone or not ours to signal."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = read(process.pid)
        if now is None or now.started != process.started:
            return False
        signal.pidfd_send_signal(handle, number)
        if number == signal.SIGTERM:
            # A stopped process would keep the request pending for ever.
            signal.pidfd_send_signal(handle, signal.SIGCONT)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


_KERNEL_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
