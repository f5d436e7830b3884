"""A program on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence


class Terminal:
    """Runs `command` on a terminal of that size; `shown` is everything it has written there."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], columns: int = 80, lines: int = 24) -> None:
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # Shells have background jobs ignore it.
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                os.execvpe(command[0], list(command), dict(environ))
            finally:
                os._exit(99)
        self.shown = ""

    def until(self, text: str, seconds: float = 30.0) -> str:
        """All that is shown once `text` is; AssertionError after so many seconds."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert self._read(end - time.monotonic()), f"{text!r} never came, but {self.shown!r}"
        return self.shown

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.write(self._master, b"\x03")

    def end(self, seconds: float = 30.0) -> int:
        """Waits for its end; the exit code."""
        end = time.monotonic() + seconds
        while self._read(end - time.monotonic()):
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._master)
        return os.waitstatus_to_exitcode(status)

    def _read(self, patience: float) -> bool:
        """False: nothing more will come, or nothing came in time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, patience))
        if not ready:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
