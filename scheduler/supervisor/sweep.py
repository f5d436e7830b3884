"""What a starting daemon does with what a former one left: the last resort, after both it and its
supervisor died.

A process belongs to a run if SCHED_RUN_ID in its environment says so, which is never given twice, and if user and boot
agree. No wall clock takes part: the ledger's may be another machine's.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection
from pathlib import Path

from scheduler.supervisor import processes
from scheduler.supervisor.cgroup import Cgroups
from scheduler.supervisor.processes import Process

_VARIABLE = b"SCHED_RUN_ID="
_ROUND = 0.1


def sweep(
    runs: Collection[str],
    *,
    since: float | None,
    users: Collection[int] = (),
    kill_after: float = 5.0,
    cgroup: str | None = None,
) -> int:
    """End what is left of these runs, with descendants: TERM, KILL after `kill_after` s; the number ended.

    `runs` are the unsettled ones of the former node. `since` is the former daemon's start
    (`StateLock.former.since`); None means another boot, after which nothing can be left. Only processes of this user
    and of `users` count, and only those younger than the former daemon; this process and its ancestors never do. Call
    it with the lock held and before any supervisor is started.
    """
    if cgroup is not None:
        for group in Cgroups(cgroup).left_over():
            group.kill()
            group.remove()
    if since is None:
        return 0
    ended: set[tuple[int, int]] = set()
    kill_at = time.monotonic() + kill_after
    while left := processes.below(process.pid for process in _left_over(runs, since, {os.geteuid(), *users})):
        killing = time.monotonic() >= kill_at
        for process in left:
            who = process.pid, process.started
            if (killing or who not in ended) and processes.send(process, signal.SIGKILL if killing else signal.SIGTERM):
                ended.add(who)
        _wait(left[0])
    return len(ended)


def _left_over(runs: Collection[str], since: float, users: Collection[int]) -> list[Process]:
    ticks = os.sysconf("SC_CLK_TCK")
    own = _ancestors()
    found = []
    for process in processes.everyone():
        if process.dead or process.pid in own:
            continue
        if process.started / ticks >= since and _run_of(process.pid, users) in runs:
            found.append(process)
    return found


def _run_of(pid: int, users: Collection[int]) -> str | None:
    folder = Path("/proc", str(pid))
    try:
        if folder.stat().st_uid not in users:
            return None
        variables = (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    value = next((text[len(_VARIABLE) :] for text in variables if text.startswith(_VARIABLE)), None)
    return None if value is None else os.fsdecode(value)


def _ancestors() -> set[int]:
    found: set[int] = set()
    pid = os.getpid()
    while pid and pid not in found:
        found.add(pid)
        process = processes.read(pid)
        pid = process.parent if process else 0
    return found


def _wait(process: Process) -> None:
    """Until it exits, at most one round."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(_ROUND * 1000)
    finally:
        os.close(handle)
