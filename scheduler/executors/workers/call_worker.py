"""A process that calls one function at a time, each in surroundings of its own."""

from __future__ import annotations

import os
import socket
import sys
import time

from scheduler.executors.workers.call_files import CallFiles
from scheduler.executors.workers.function import (
    NotCallable,
    SourceStamps,
    call,
    find,
    own_traceback,
)
from scheduler.executors.workers.surroundings import Surroundings, left
from scheduler.executors.workers.wire import READY, Message, Unpacker, no_room, pack


class CallWorker:
    """Serves its channel in the main thread, where functions may use signals.

    Each run sees the environment it was given and nothing of the one before; its prints go to its own output. What a
    run leaves behind (threads, processes) is told with its answer. Code that was changed on disk since it was imported
    makes the worker refuse the run as stale: a fresh process then takes it.
    """

    def __init__(self, channel: socket.socket, python_path: str) -> None:
        self._channel = channel
        self._surroundings = Surroundings(channel)
        sys.path[:0] = [self._surroundings.home, *filter(None, python_path.split(os.pathsep))]
        self._stamps = SourceStamps()

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
        files = CallFiles(order)
        try:
            output = files.make()
        except OSError as error:
            files.close()
            return {"run": order["run"], **no_room(error)}
        with self._surroundings.of(files.environment, output):
            answer = _outcome(order)
            self._surroundings.end_if_forked(answer.get("exit", 1 if "error" in answer else 0))
        ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        files.close()
        self._stamps.extend()
        threads, processes = left()
        wrote = bool(threads or processes or not files.remove_unused())
        about = {"at": ended, "threads": threads, "processes": processes, "wrote": wrote}
        return {"run": order["run"], **about, **answer}


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
