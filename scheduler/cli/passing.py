"""What a command prints, passed on byte by byte while its last bytes are remembered."""

from __future__ import annotations

import errno
import os
import select
import threading

CHUNK = 65_536


class Tail:
    """The last `size` bytes, and how many came before them. Any thread may add."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._guard = threading.Lock()
        self._kept = b""
        self._omitted = 0

    def add(self, data: bytes) -> None:
        with self._guard:
            self._kept += data
            cut = max(0, len(self._kept) - self._size)
            self._kept, self._omitted = self._kept[cut:], self._omitted + cut

    @property
    def kept(self) -> tuple[bytes, int]:
        with self._guard:
            return self._kept, self._omitted


class Passage:
    """From a pipe to a descriptor, in a thread, until the pipe is at its end, nobody takes what comes, or `stop`."""

    def __init__(self, source: int, target: int, tail: Tail) -> None:
        self.source = source
        self.target = target
        self.over = False
        """Nothing more can come: whoever wrote is gone, or whoever read."""
        self._tail = tail
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._pass, name="passage", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Whether the thread has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Reads nothing more; what was read is still passed on."""
        os.write(self._waker, b".")

    def _pass(self) -> None:
        waiting = select.poll()
        waiting.register(self.source, select.POLLIN)
        waiting.register(self._wake, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if self.source not in ready:
                return
            data = os.read(self.source, CHUNK)
            self._tail.add(data)
            if not data or not write_all(self.target, data):
                # Whoever goes on writing hears of it as if we were not here.
                os.close(self.source)
                self.over = True
                return
            if self._wake in ready:
                return


def write_all(target: int, data: bytes) -> bool:
    """False: nobody takes it any more. A target that takes nothing now is waited for, however it was opened."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(target, left) :]
        except BlockingIOError:
            select.select([], [target], [])
        except OSError as error:
            # A full disk refuses what the command itself would have been refused.
            return error.errno == errno.ENOSPC
    return True
