"""The locks of a SQLite file: whoever holds them knows that no other daemon, and nothing it started, uses the file.

The one beside it (`FILE.lock`) says who holds it. The one on the file itself is for whoever comes by another name: it
was renamed, or its directory is mounted twice. A file that has two names at a time is refused altogether: SQLite keeps
what was written last beside the name by which it opened the file, and whoever comes by the other does not see it. It is
a lock of an open file description on a byte far behind those that SQLite locks, so
neither disturbs the other. But SQLite's own locks end when this process closes any descriptor of the file: here that is
done before SQLite opens it and after it has closed it, and never between.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import struct
import time
from collections.abc import Callable
from pathlib import Path

from scheduler.core.errors import StartError
from scheduler.supervisor import processes
from scheduler.supervisor.state import open_lock_file, try_lock

_PATIENCE = 15.0  # seconds for the supervisor of a daemon that is gone to end what it owns
_ROUND = 0.05
_BYTE = 1 << 62  # SQLite's are the 512 from 1 << 30 on
_FLOCK = "hhqqi0q"  # struct flock of fcntl(2): type, whence, start, length, pid
_ALONE = "SQLite is for one daemon; stop the other one, or give this one a database of its own"


class InUse(StartError):
    """Somebody else holds the lock."""


class FileLock:
    """`fds` are inherited by the supervisor, and the locks last as long as either."""

    def __init__(self, fds: tuple[int, ...]) -> None:
        self.fds = fds

    @classmethod
    def acquire(cls, file: Path, *, patience: float = _PATIENCE, create: bool = False) -> FileLock:
        """Locks `FILE.lock`, and the file itself if it is there (`create`: made, empty, if it is not).

        InUse at once if a living daemon holds the former, naming its pid, StartError if the file has several names; a
        supervisor whose daemon is gone, and whoever holds the file by another name, gets `patience` seconds."""
        file = file.resolve()  # One file, one lock, whatever links lead to it.
        fds = [open_lock_file(file.with_name(file.name + ".lock"))]
        try:
            _take(fds[0], file, patience)
            os.truncate(fds[0], 0)
            os.pwrite(fds[0], str(os.getpid()).encode(), 0)
            fds += _lock_itself(file, patience, create=create)
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise
        return cls(tuple(fds))

    def release(self) -> None:
        """Let go of this process's hold; the supervisor's lasts until it ends. SQLite must have closed the file."""
        for fd in self.fds:
            os.close(fd)


def _take(fd: int, file: Path, patience: float) -> None:
    until = time.monotonic() + patience
    while not try_lock(fd):
        text = os.pread(fd, 32, 0)
        holder = processes.read(int(text)) if text.isdigit() else None
        if (holder is not None and not holder.dead) or time.monotonic() >= until:
            who = f"the daemon with pid {holder.pid}" if holder is not None else "another process"
            raise InUse(f"the database file {file} is in use by {who}", hint=_ALONE)
        time.sleep(_ROUND)


def _lock_itself(file: Path, patience: float, *, create: bool) -> list[int]:
    """The descriptor that holds the lock on the file itself; none if there is no file."""
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StartError(
            f"{file}: {error.strerror}", hint="the database file must be writable; see SCHEDULER_STATE_DIR"
        ) from None
    try:
        _refuse_names(fd, file)
        _wait(lambda: _try_lock_byte(fd), file, patience)
    except BaseException:
        os.close(fd)
        raise
    return [fd]


def _wait(got: Callable[[], bool], file: Path, patience: float) -> None:
    until = time.monotonic() + patience
    while not got():
        if time.monotonic() >= until:
            raise InUse(f"the database file {file} is in use by another daemon, under another name", hint=_ALONE)
        time.sleep(_ROUND)


def _refuse_names(fd: int, file: Path) -> None:
    links = os.fstat(fd).st_nlink
    if links > 1:
        mount = next(folder for folder in file.parents if os.path.ismount(folder))
        find = shlex.join(["find", str(mount), "-xdev", "-samefile", str(file)])
        raise StartError(
            f"the database file {file} has {links} names, which `{find}` shows: what SQLite writes by one of them"
            " is not seen, and may be undone, by the other",
            hint="leave it the name by which it was used last; to copy it: schedctl db backup FILE",
        )


def _try_lock_byte(fd: int) -> bool:
    """Whether the byte is locked now, or the system knows no such locks."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0))
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True
