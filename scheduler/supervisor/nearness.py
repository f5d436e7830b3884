"""Which programs and work directories lie on local disks, so that executing them waits for nobody.

To look at a file may block for as long as its server is away, so one thread does it that nobody waits for, and what is
not known is not near.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time

from scheduler.core.children import ChildSpec
from scheduler.core.value_object import value_object

LASTS = 60.0
"""Seconds after which something is looked at again: other things may have been mounted there."""
LOCAL = frozenset({"bcachefs", "btrfs", "erofs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})
LINKS = 40
"""That a way may follow, as in Linux."""
MOST = 4096
"""Answers kept; with more, all are asked for again."""

_BINARY = b"\x7fELF"

Key = tuple[str, str, str]


@value_object
class _Answer:
    near: str | None
    until: float


class Nearness:
    """Answers from memory; what it has not looked at lately it looks at soon."""

    def __init__(self) -> None:
        self._answers: dict[Key, _Answer] = {}
        self._asked: set[Key] = set()
        self._questions: queue.SimpleQueue[Key] = queue.SimpleQueue()
        # Nobody waits for it at the end either.
        threading.Thread(target=self._look, name="nearness", daemon=True).start()

    def of(self, spec: ChildSpec) -> str | None:
        """The file that executing `spec` executes, if that is a binary and lies, like the work directory, on local
        disks; None as well while that is not known. Never blocks."""
        key = spec.argv[0], spec.env.get("PATH", os.defpath), spec.cwd
        answer = self._answers.get(key)
        if answer is not None and time.monotonic() < answer.until:
            return answer.near
        if key not in self._asked:
            self._asked.add(key)
            self._questions.put(key)
        return None

    def _look(self) -> None:
        while True:
            key = self._questions.get()
            try:
                near = near_program(*key)
            except (OSError, ValueError):
                near = None
            if len(self._answers) >= MOST:
                self._answers.clear()
            self._answers[key] = _Answer(near, time.monotonic() + LASTS)
            self._asked.discard(key)


def near_program(name: str, search: str, folder: str) -> str | None:
    """The path of the binary that `name` stands for, None if that or `folder` may be far away; OSError likewise."""
    program = _found(name, search, folder)
    if program is None or not (_is_local(folder) and _is_local(program)):
        return None
    with open(program, "rb") as file:
        return program if file.read(len(_BINARY)) == _BINARY else None


def _found(name: str, search: str, folder: str) -> str | None:
    """The first candidate that is there; a PATH with places that depend on the work directory is left to exec."""
    candidates = [name] if "/" in name else [f"{place or '.'}/{name}" for place in search.split(":")]
    for candidate in candidates:
        path = os.path.join(folder, candidate)
        if not os.path.isabs(candidate) and "/" not in name:
            return None
        if os.path.exists(path):
            return path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    return None


def _is_local(path: str) -> bool:
    """Every place that the kernel passes on the way to `path` is of a local file system."""
    kinds = _mounted()
    return all(kinds.get(_mount_of(place)) in LOCAL for place in _way(path))


def _way(path: str) -> list[str]:
    """Those places, what links lead to included; OSError if it does not end."""
    passed, links = ["/"], 0
    ahead = path.split("/")[::-1]
    while ahead:
        part = ahead.pop()
        place = os.path.join(passed[-1], part)
        if os.path.islink(place):
            links += 1
            if links > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(place)
            ahead += target.split("/")[::-1]
            if target.startswith("/"):
                passed.append("/")
        elif part not in ("", "."):
            passed.append(os.path.normpath(place))
    return passed


def _mounted() -> dict[str, str]:
    """Kinds of file systems by the number of their mount."""
    kinds = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kinds[left.split(" ", 1)[0]] = right.split(" ", 1)[0]
    return kinds


def _mount_of(path: str) -> str:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
            return next(line.split()[1] for line in file if line.startswith("mnt_id:"))
    finally:
        os.close(descriptor)
