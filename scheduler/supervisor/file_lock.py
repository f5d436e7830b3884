"""The lock beside a SQLite file: whoever holds it knows that no other daemon, and nothing it started, uses the file."""

from __future__ import annotations

import os
import time
from pathlib import Path

from scheduler.core.errors import StartError
from scheduler.supervisor import processes
from scheduler.supervisor.state import open_lock_file, try_lock

_PATIENCE = 15.0  # seconds for the supervisor of a daemon that is gone to end what it owns
_ROUND = 0.05


class FileLock:
    """`fd` is inherited by the supervisor, and the lock lasts as long as either."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def acquire(cls, file: Path, *, patience: float = _PATIENCE) -> FileLock:
        """Locks `FILE.lock`. StartError at once if a living daemon holds it, naming its pid; a supervisor whose daemon
        is gone gets `patience` seconds."""
        file = file.resolve()  # One file, one lock, whatever links lead to it.
        fd = open_lock_file(file.with_name(file.name + ".lock"))
        try:
            _take(fd, file, patience)
            os.truncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        """Let go of this process's hold; the supervisor's lasts until it ends."""
        os.close(self.fd)


def _take(fd: int, file: Path, patience: float) -> None:
    until = time.monotonic() + patience
    while not try_lock(fd):
        text = os.pread(fd, 32, 0)
        holder = processes.read(int(text)) if text.isdigit() else None
        if (holder is not None and not holder.dead) or time.monotonic() >= until:
            who = f"the daemon with pid {holder.pid}" if holder is not None else "another process"
            raise StartError(
                f"the database file {file} is in use by {who}",
                hint="SQLite is for one daemon; stop the other one, or give this one a database of its own",
            )
        time.sleep(_ROUND)
