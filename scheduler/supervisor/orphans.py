"""What falls to the daemon, a subreaper, when its supervisor dies: ended and reaped here.

A run's processes are recognized by their session: the supervisor starts every child in a new one, and a
process can leave its session only for another new one. The daemon's own helpers stay in its session.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection

from scheduler.supervisor import processes
from scheduler.supervisor.processes import Process

_ROUND = 0.05  # seconds between two looks


def end_orphans(*, spare: Collection[int] = (), since: int = 0, kill_after: float = 5.0) -> int:
    """TERM now, KILL after `kill_after` seconds, to everything that fell to this process; the number ended.

    Returns only when all of it is gone and reaped. `spare` are children of this process that run in a
    session of their own and are to live (a new supervisor), and so are those that started before `since`,
    the dead supervisor's start in clock ticks since boot. Processes in uninterruptible sleep hold it up,
    and must: they may still act.
    """
    ended: set[tuple[int, int]] = set()
    kill_at = time.monotonic() + kill_after
    empty_looks = 0
    # The list of children may skip one while another thread reaps, so one empty look proves nothing.
    while empty_looks < 2:
        orphans = _orphans(spare, since)
        for orphan in orphans:
            _reap(orphan)
        members = processes.below(orphan.pid for orphan in orphans if not orphan.dead)
        empty_looks = 0 if orphans else empty_looks + 1
        killing = time.monotonic() >= kill_at
        for process in members:
            who = process.pid, process.started
            if (killing or who not in ended) and processes.send(process, signal.SIGKILL if killing else signal.SIGTERM):
                ended.add(who)
        if orphans:
            _wait_for_any(orphans)
    return len(ended)


def reap_orphans(*, spare: Collection[int] = ()) -> int:
    """Reap what fell to this process and has exited; the number reaped. A daemon that is process 1 needs it.

    Children in the daemon's own session are left to whoever started them.
    """
    return sum(_reap(orphan) for orphan in _orphans(spare) if orphan.dead)


def _orphans(spare: Collection[int], since: int = 0) -> list[Process]:
    session = os.getsid(0)
    found = (processes.read(pid) for pid in processes.children_of(os.getpid()) if pid not in spare)
    return [
        process for process in found if process is not None and process.session != session and process.started >= since
    ]


def _reap(process: Process) -> bool:
    try:
        return os.waitpid(process.pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _wait_for_any(orphans: list[Process]) -> None:
    """Until one of them exits, at most one round."""
    poll = select.poll()
    handles = []
    try:
        for orphan in orphans[:100]:
            try:
                handles.append(os.pidfd_open(orphan.pid))
            except OSError:
                continue
            poll.register(handles[-1], select.POLLIN)
        if handles:
            poll.poll(_ROUND * 1000)
    finally:
        for handle in handles:
            os.close(handle)
