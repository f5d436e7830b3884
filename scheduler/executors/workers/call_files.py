"""The files of one call, made by its worker: the daemon need not wait for a disk that often."""

from __future__ import annotations

import contextlib
import os

from scheduler.executors.attempts.privacy import keep_to_owner, passable
from scheduler.executors.attempts.values import to_json
from scheduler.executors.workers.surroundings import appending
from scheduler.executors.workers.wire import Message


class CallFiles:
    """Payload and checkpoint, if there are any, and the output. What was given to the call as an argument anyway need
    not lie on a disk: its file is in memory, for whoever runs as this user, until `close`."""

    def __init__(self, order: Message) -> None:
        self.environment: dict[str, str] = order["environment"]
        self._output = order["output"]
        self._report = self.environment["SCHED_REPORT_FILE"]
        self._given = {"SCHED_PAYLOAD_FILE": order["payload"], "SCHED_CHECKPOINT_FILE": order["checkpoint"]}
        self._open: list[int] = []

    def make(self) -> int:
        """The descriptor of the output, for appending; `environment` names the others. OSError when the disk does not
        take them, or there is no memory."""
        for name, value in self._given.items():
            if self.environment[name]:
                descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
                self._open.append(descriptor)
                data = to_json(value)
                while data:
                    data = data[os.write(descriptor, data) :]
                self.environment[name] = f"/proc/{os.getpid()}/fd/{descriptor}"
        output = appending(self._output)
        try:
            if passable(os.path.dirname(self._report)):
                keep_to_owner(self._report)
        except OSError:
            os.close(output)
            raise
        return output

    def close(self) -> None:
        for descriptor in self._open:
            with contextlib.suppress(OSError):  # The function may have done that.
                os.close(descriptor)

    def remove_unused(self) -> bool:
        """Removes the output if nothing was printed and nothing reported; whether it did."""
        reported = _size(self._report)
        if reported or _size(self._output) != 0:
            return False
        for path in (self._output, *(() if reported is None else (self._report,))):
            with contextlib.suppress(OSError):
                os.unlink(path)
        return True


def _size(path: str) -> int | None:
    """None: it is not there."""
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return None
