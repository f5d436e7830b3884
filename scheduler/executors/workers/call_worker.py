"""A process that calls one function at a time, each in surroundings of its own."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from scheduler.executors.workers.function import (
    NotCallable,
    SourceStamps,
    call,
    find,
    own_traceback,
)
from scheduler.executors.workers.wire import READY, Message, Unpacker, pack

_PR_SET_CHILD_SUBREAPER = 36
_ENDING = 0.1  # seconds


class CallWorker:
    """Serves its channel in the main thread, where functions may use signals.

    Each run sees the environment it was given and nothing of the one before; its prints go to its own output. What a
    run leaves behind (threads, processes) is told with its answer. Code that was changed on disk since it was imported
    makes the worker refuse the run as stale: a fresh process then takes it.
    """

    def __init__(self, channel: socket.socket, python_path: str) -> None:
        self._channel = channel
        self._home = os.getcwd()
        sys.path[:0] = [self._home, *filter(None, python_path.split(os.pathsep))]
        self._clean = dict(os.environ)
        self._stamps = SourceStamps()
        self._null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._own = os.dup(1)
        os.set_inheritable(self._own, False)
        # Grandchildren that lose their parent become ours, so that they are noticed.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(line_buffering=True, errors="backslashreplace")
        self._streams = (sys.stdout, sys.stderr)

    def serve(self) -> None:
        """Until the daemon closes the channel."""
        unpacker = Unpacker()
        self._channel.sendall(pack(READY))
        while piece := self._channel.recv(1 << 16):
            for order in unpacker.feed(piece):
                self._channel.sendall(pack(self._carry_out(order)))

    def _carry_out(self, order: Message) -> Message:
        if self._stamps.stale():
            return {"run": order["run"], "stale": True}
        with self._surroundings(order):
            answer = _outcome(order)
            for stream in (*self._streams, sys.stdout, sys.stderr):
                _flush(stream)
        ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._stamps.extend()
        threads, processes = _left()
        return {"run": order["run"], "at": ended, "threads": threads, "processes": processes, **answer}

    @contextmanager
    def _surroundings(self, order: Message) -> Iterator[None]:
        output = os.open(order["output"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        mask = os.umask(0o022)
        os.umask(mask)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        _use(order["environment"])
        try:
            yield
        finally:
            sys.stdout, sys.stderr = self._streams
            os.dup2(self._own, 1)
            os.dup2(self._own, 2)
            _use(self._clean)
            os.umask(mask)
            signal.alarm(0)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.chdir(self._home)


def _outcome(order: Message) -> Message:
    try:
        function = find(order["function"])
        return {"result": call(function, order["payload"], order["has_payload"], order["with"])}
    except NotCallable as error:
        print(error, file=sys.stderr)
        return {"error": str(error), "final": True}
    except SystemExit as error:
        if error.code is None or error.code == 0:
            return {"result": None}
        if not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        return {"exit": error.code & 0xFF if isinstance(error.code, int) else 1}
    except BaseException as error:
        print(own_traceback(error), end="", file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}".rstrip(": ")}


def _use(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()


def _flush(stream: object) -> None:
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return


def _left() -> tuple[int, int]:
    """Threads and processes that the run did not end; those that are just ending are waited for."""
    until = time.monotonic() + _ENDING
    while True:
        left = threading.active_count() - 1, len(_children())
        if left == (0, 0) or time.monotonic() > until:
            return left
        time.sleep(0.005)


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
