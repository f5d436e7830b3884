"""The events of one run, as the daemon tells them (Server-Sent Events)."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
from collections.abc import Iterator
from typing import Any

from scheduler.cli.daemon import Daemon
from scheduler.core.errors import Unavailable
from scheduler.core.value_object import value_object

SILENCE = 45.0
"""Seconds without a word (a daemon says every 15 s that it is alive) after which a stream counts as broken."""


@value_object
class Said:
    """One event; `name` is empty when the daemon only said that it is there."""

    name: str
    data: Any = None


class RunStream:
    """Opened at once, from the event after `last` on; read by a thread of its own, so that whoever listens can do
    something else meanwhile. Raises what a request raises: Unavailable also when the node has too many streams open."""

    def __init__(self, daemon: Daemon, path: str, last: str) -> None:
        self._place = daemon.place
        self._response, self._socket = daemon.stream(path, {"Last-Event-ID": last} if last else {}, timeout=SILENCE)
        self._news: queue.SimpleQueue[Said | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, name="stream", daemon=True)
        self._thread.start()

    def next(self, timeout: float) -> Said | None:
        """The next event; None if there is none within so many seconds. Unavailable when the connection is gone."""
        try:
            said = self._news.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return None
        if said is None:
            self._news.put(None)
            raise Unavailable(f"the stream of the daemon at {self._place} broke off")
        return said

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _read(self) -> None:
        try:
            for said in _events(self._lines()):
                self._news.put(said)
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            # The library finds its own attributes missing when another thread ends the connection.
            pass
        finally:
            self._response.close()
            self._socket.close()
            self._news.put(None)

    def _lines(self) -> Iterator[str]:
        while line := self._response.readline():
            yield line.decode("utf-8").rstrip("\r\n")


def _events(lines: Iterator[str]) -> Iterator[Said]:
    """ValueError for what is no event of a daemon."""
    name, data = "", ""
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data += value
        elif not line:
            yield Said(name, json.loads(data) if data else None)
            name, data = "", ""
