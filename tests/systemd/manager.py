"""A service manager as a daemon sees it: a datagram socket that hears, and the environment that says so."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

Message = dict[str, str]


class Manager:
    """Listens at a path, or at an abstract name with `@`. Keeps every message with the monotonic time of its arrival,
    the process that sent it, and its lines."""

    def __init__(self, address: str, watchdog: float | None = None) -> None:
        self.address = address
        self._watchdog = watchdog
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._changed = threading.Condition()
        self.heard: list[tuple[float, int, Message]] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        said = {"NOTIFY_SOCKET": self.address}
        if self._watchdog is not None:
            said["WATCHDOG_USEC"] = str(int(self._watchdog * 1e6))
        return said

    def messages(self) -> list[Message]:
        with self._changed:
            return [message for _, _, message in self.heard]

    def times(self, name: str) -> list[float]:
        """When messages with a line of that name came."""
        with self._changed:
            return [at for at, _, message in self.heard if name in message]

    def senders(self) -> set[int]:
        with self._changed:
            return {pid for _, pid, _ in self.heard}

    def wait(self, wanted: Callable[[Message], bool], timeout: float = 20.0, since: int = 0) -> Message:
        """The first message from number `since` on that is wanted."""

        def found() -> Message | None:
            return next((message for _, _, message in self.heard[since:] if wanted(message)), None)

        with self._changed:
            assert self._changed.wait_for(lambda: found() is not None, timeout), [m for _, _, m in self.heard]
            message = found()
        assert message is not None
        return message

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._socket.close()
        if not self.address.startswith("@"):
            Path(self.address).unlink(missing_ok=True)

    def _listen(self) -> None:
        while True:
            data, ancillary, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(12))
            if not data:
                return
            pid = int.from_bytes(ancillary[0][2][:4], "little") if ancillary else os.getpid()
            lines = dict(line.split("=", 1) for line in data.decode().splitlines())
            with self._changed:
                self.heard.append((time.monotonic(), pid, lines))
                self._changed.notify_all()
