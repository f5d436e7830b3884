"""The files of one call, made by its worker: the daemon need not wait for a disk that often."""

from __future__ import annotations

import contextlib
import os

from scheduler.executors.attempts.privacy import keep_to_owner, passable
from scheduler.executors.attempts.values import to_json
from scheduler.executors.workers.surroundings import appending, identity
from scheduler.executors.workers.wire import Message

_ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class CallFiles:
    """Payload and checkpoint, if there are any, and the output. What was given to the call as an argument anyway need
    not lie on a disk: its file is in memory until `close`, where the system has such files."""

    def __init__(self, order: Message) -> None:
        self.environment: dict[str, str] = order["environment"]
        self._output = order["output"]
        self._report = self.environment["SCHED_REPORT_FILE"]
        given = {"SCHED_PAYLOAD_FILE": order["payload"], "SCHED_CHECKPOINT_FILE": order["checkpoint"]}
        self._given = {name: to_json(value) for name, value in given.items() if self.environment[name]}
        self._in_memory: list[tuple[int, object]] = []
        self._on_disk: list[str] = []

    def make(self) -> int:
        """The descriptor of the output, for appending; `environment` names the others. OSError when the disk does not
        take them."""
        for name, data in self._given.items():
            self.environment[name] = self._put(name, data)
        output = appending(self._output)
        try:
            if passable(os.path.dirname(self._report)):
                keep_to_owner(self._report)
        except OSError:
            os.close(output)
            raise
        return output

    def _put(self, name: str, data: bytes) -> str:
        """Where it lies."""
        try:
            descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        except (AttributeError, OSError):
            return self._put_on_disk(self.environment[name], data)
        self._in_memory.append((descriptor, identity(descriptor)))
        _write(descriptor, data)
        return f"/proc/{os.getpid()}/fd/{descriptor}"

    def _put_on_disk(self, path: str, data: bytes) -> str:
        self._on_disk.append(path)
        descriptor = os.open(path, _ANEW, 0o600)
        try:
            _write(descriptor, data)
        finally:
            os.close(descriptor)
        return path

    def close(self) -> None:
        """What is in memory; the function may have done that, and opened something else."""
        for descriptor, what in self._in_memory:
            if identity(descriptor) == what:
                os.close(descriptor)

    def remove_unused(self) -> bool:
        """Removes what is on disk if nothing was printed and nothing reported; whether it did."""
        reported = _size(self._report)
        if reported or _size(self._output) != 0:
            return False
        for path in (*self._on_disk, self._output, *(() if reported is None else (self._report,))):
            with contextlib.suppress(OSError):
                os.unlink(path)
        return True


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _size(path: str) -> int | None:
    """None: it is not there."""
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return None
