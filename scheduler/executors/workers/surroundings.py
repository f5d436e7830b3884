"""What one run sees of its worker process: its own environment and output, and nothing of the run before it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper

from scheduler.executors.workers.wire import BEREFT, CLOSED_OURS

_LIBC = ctypes.CDLL(None)
_PR_SET_CHILD_SUBREAPER = 36
_ENDING = 0.1  # seconds
_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)


class Surroundings:
    """Made once per process, in its main thread. Grandchildren that lose their parent become the process's own from
    then on, so that they are noticed. What the run forks has no `channel`: it must not answer in the run's place, nor
    take the next one."""

    def __init__(self, channel: socket.socket) -> None:
        self.home = os.getcwd()
        self._pid = os.getpid()
        os.register_at_fork(after_in_child=channel.close)
        self._own = os.dup(1)
        os.set_inheritable(self._own, False)
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(line_buffering=True, errors="backslashreplace")
        self._streams = (sys.stdout, sys.stderr)
        self._needed = {number: identity(number) for number in (channel.fileno(), self._own)}
        self._mask = os.umask(0o022)
        os.umask(self._mask)
        self._handlers = {number: signal.getsignal(number) for number in _HANDLED}

    @contextmanager
    def of(self, environment: Mapping[str, str], output: int) -> Iterator[None]:
        """For one run, which prints to this descriptor: everything it changed of the process is as before at the end,
        but for the environment, which the next one gets its own of; and all it printed is written. Where it closed what
        the process cannot do without, or put something else in its place, the process ends."""
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        _use(environment)
        try:
            yield
            for stream in (*self._streams, sys.stdout, sys.stderr):
                _flush(stream)
        finally:
            if any(identity(number) != what for number, what in self._needed.items()):
                _end_bereft()
            sys.stdout, sys.stderr = self._streams
            os.dup2(self._own, 1)
            os.dup2(self._own, 2)
            os.umask(self._mask)
            signal.alarm(0)
            for number, handler in self._handlers.items():
                if signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
            os.chdir(self.home)

    def end_if_forked(self, code: int) -> None:
        """Where a fork comes back from the work of the run, it ends like a program of its own."""
        if os.getpid() != self._pid:
            for stream in (*self._streams, sys.stdout, sys.stderr):
                _flush(stream)
            os._exit(code)


def appending(path: str) -> int:
    """A descriptor for what a run prints; OSError when the disk does not take it."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def identity(descriptor: int) -> tuple[int, int] | None:
    """Of what is open under this number: numbers are given again."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _end_bereft() -> None:
    """Nothing can be answered any more; what there is to say goes to the output of the run, and into the exit code."""
    with suppress(OSError):
        os.write(2, f"call: {CLOSED_OURS}; close only what you have opened\n".encode())
    os._exit(BEREFT)


def left() -> tuple[int, int]:
    """Threads and processes that the run did not end; those that are just ending are waited for."""
    until = time.monotonic() + _ENDING
    while True:
        found = threading.active_count() - 1, len(_children())
        if found == (0, 0) or time.monotonic() > until:
            return found
        time.sleep(0.005)


def _use(environment: Mapping[str, str]) -> None:
    """All of it is written anew: what `putenv` or `tzset` of the run before did is not seen in `os.environ`."""
    _LIBC.clearenv()
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    time.tzset()


def _flush(stream: object) -> None:
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return


def _children() -> list[int]:
    """Living child processes; those that are only waiting to be noticed are."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            # Without this list of the kernel's: there is at least one, or waitpid would have said so.
            found.append(0)
    return found
