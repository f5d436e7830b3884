"""The secrets of one source as they are now: a file that was changed counts without a reload."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from scheduler.config.secrets import read_secret
from scheduler.core.errors import InvalidInput
from scheduler.core.secret import Secret
from scheduler.core.signature import LiveSecret

LOOK = 1.0
"""Seconds for which a file is taken to be as it was."""

_Mark = tuple[int, int, int] | None


class LiveSecrets:
    """Any thread may ask. Those that cannot be read are left out; `problems` says why."""

    def __init__(
        self, secrets: Sequence[Secret], environ: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._secrets = tuple(secrets)
        self._files = tuple(one.file for one in secrets if one.file is not None)
        self._environ = environ
        self._clock = clock
        self._guard = threading.Lock()
        self._marks = self._look()
        self._looked = clock()
        self._live, self.problems = self._read()

    def now(self) -> tuple[LiveSecret, ...]:
        """Looks at the files at most once a second."""
        if self._files and self._clock() - self._looked >= LOOK:
            self.changed()
        return self._live

    def changed(self) -> bool:
        """Looks at the files at once, and reads them if one is another than before."""
        if not self._files:
            return False
        with self._guard:
            self._looked = self._clock()
            marks = self._look()
            # A file that could not be read is tried again: its folder's rights may have changed, which no mark tells.
            if marks == self._marks and not self.problems:
                return False
            before = self._live
            self._marks = marks
            self._live, self.problems = self._read()
            return self._live != before

    def _look(self) -> tuple[_Mark, ...]:
        return tuple(_mark(path) for path in self._files)

    def _read(self) -> tuple[tuple[LiveSecret, ...], tuple[str, ...]]:
        live: list[LiveSecret] = []
        problems: list[str] = []
        for one in self._secrets:
            name = one.env or one.file or ""
            try:
                live.append(LiveSecret(name, read_secret(name, one, self._environ)))
            except InvalidInput as error:
                problems.append(str(error))
        return tuple(live), tuple(problems)


def _mark(path: str) -> _Mark:
    """What changes when a file is written or exchanged, also behind a symlink."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
