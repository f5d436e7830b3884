"""The files of one call, made by its worker: the daemon need not wait for a disk that often."""

from __future__ import annotations

import contextlib
import os

from scheduler.executors.attempts.privacy import keep_to_owner, passable
from scheduler.executors.attempts.values import to_json
from scheduler.executors.workers.surroundings import appending
from scheduler.executors.workers.wire import Message

_ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class CallFiles:
    """Payload and checkpoint, if there are any, where the environment says they are, and the output."""

    def __init__(self, order: Message) -> None:
        environment = order["environment"]
        self._output = order["output"]
        self._report = environment["SCHED_REPORT_FILE"]
        given = {"SCHED_PAYLOAD_FILE": order["payload"], "SCHED_CHECKPOINT_FILE": order["checkpoint"]}
        self._read = {path: to_json(value) for name, value in given.items() if (path := environment[name])}

    def make(self) -> int:
        """The descriptor of the output, for appending. OSError when the disk does not take them."""
        for path, data in self._read.items():
            descriptor = os.open(path, _ANEW, 0o600)
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            finally:
                os.close(descriptor)
        output = appending(self._output)
        try:
            if passable(os.path.dirname(self._report)):
                keep_to_owner(self._report)
        except OSError:
            os.close(output)
            raise
        return output

    def remove_unused(self) -> bool:
        """Removes them if nothing was printed and nothing reported; whether it did."""
        reported = _size(self._report)
        if reported or _size(self._output) != 0:
            return False
        for path in (*self._read, self._output, *(() if reported is None else (self._report,))):
            with contextlib.suppress(OSError):
                os.unlink(path)
        return True


def _size(path: str) -> int | None:
    """None: it is not there."""
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return None
