"""A cgroup v2 of its own for every run, where the system has delegated a subtree to the daemon.

It needs no controllers: membership (which no fork, setsid or double fork escapes) and `cgroup.kill` are all
it is for. Everything here is answered by the kernel at once, without a disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_PREFIX = "run-"


class Cgroup:
    """The group of one run."""

    def __init__(self, path: str) -> None:
        self.path = path

    def join(self) -> None:
        """Move the calling process into it, if the system lets us."""
        with contextlib.suppress(OSError):
            _write(os.path.join(self.path, "cgroup.procs"), b"0")

    def pids(self) -> list[int]:
        """Every process in it and in groups made below it; zombies do not count."""
        return [pid for folder in self._folders() for pid in _pids(folder)]

    def kill(self) -> None:
        """SIGKILL to all of them at once, also to those that are being forked."""
        # The file came with Linux 5.14; the caller kills one by one as well.
        with contextlib.suppress(FileNotFoundError):
            _write(os.path.join(self.path, "cgroup.kill"), b"1")

    def remove(self) -> None:
        """Take the empty group away; one that is in use stays."""
        for folder in self._folders():
            try:
                os.rmdir(folder)
            except OSError:
                return

    def _folders(self) -> Iterator[str]:
        for folder, _names, _files in os.walk(self.path, topdown=False):
            yield folder


class Cgroups:
    """Makes groups below `root`, a delegated directory of cgroup v2."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._made = 0

    def make(self) -> Cgroup | None:
        """A new, empty group; None where the system does not let us (marks and sessions remain)."""
        self._made += 1
        path = os.path.join(self._root, f"{_PREFIX}{os.getpid()}-{self._made}")
        try:
            os.mkdir(path)
        except OSError:
            return None
        return Cgroup(path)

    def left_over(self) -> list[Cgroup]:
        """The groups of a former supervisor of this directory."""
        return [Cgroup(entry.path) for entry in os.scandir(self._root) if entry.name.startswith(_PREFIX)]


def delegated() -> str | None:
    """The cgroup v2 directory that was handed over to this process (`Delegate=`), else None: its own, or
    the one above if it was put into a leaf of it (`DelegateSubgroup=`). It enables no controllers, so that
    processes beside groups are allowed.

    Root may write everywhere, so being allowed to is not enough: systemd marks what it delegates.
    """
    path = _own_path()
    if path is None:
        return None
    for place in (path, os.path.dirname(path)):
        for name in ("user.delegate", "trusted.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(place, name) == b"1":
                    return place
    handed_over = os.geteuid() != 0 and os.access(path, os.W_OK)
    return path if handed_over and os.access(os.path.join(path, "cgroup.procs"), os.W_OK) else None


def _own_path() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            inside = next((line[3:].strip() for line in file if line.startswith("0::")), None)
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return None
    for fields in mounts:
        if inside is not None and fields[fields.index("-") + 1] == "cgroup2":
            below = os.path.relpath(inside, fields[3])
            path = os.path.normpath(os.path.join(fields[4], below))
            return path if not below.startswith("..") and os.path.isdir(path) else None
    return None


def _pids(folder: str) -> list[int]:
    try:
        with open(os.path.join(folder, "cgroup.procs"), "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
