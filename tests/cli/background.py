"""A command that goes on while the test does something."""

from __future__ import annotations

import os
import threading

from tests.faces import Served
from tests.until import until


class Background:
    """`schedctl …` in a thread. Wants the fixture `capfd` or `capfdbinary`: what was written is read where it lies,
    since `readouterr()` loses what a thread writes while it takes away what was there."""

    def __init__(self, served: Served, *words: str) -> None:
        self.codes: list[int] = []
        self._begins = {fd: os.fstat(fd).st_size for fd in (1, 2)}
        self._thread = threading.Thread(target=lambda: self.codes.append(served.schedctl(*words)))
        self._thread.start()

    @property
    def out(self) -> bytes:
        """What it has written to stdout so far."""
        return self._written(1)

    @property
    def err(self) -> bytes:
        return self._written(2)

    def until(self, word: bytes) -> None:
        until(lambda: word in self.out + self.err)

    def join(self) -> None:
        """Waits for its end."""
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _written(self, fd: int) -> bytes:
        begin = self._begins[fd]
        return os.pread(fd, os.fstat(fd).st_size - begin, begin)
