"""Watches the jobs file by its content: editors that rename and Kubernetes that swaps symlinks look alike this way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from scheduler.core.errors import SchedulerError, Unavailable

log = structlog.get_logger("engine")


class Watch:
    """`fingerprint` hashes the texts as they are now (None: unreadable), `reload` puts them in force."""

    def __init__(self, fingerprint: Callable[[], str | None], reload: Callable[[], object]) -> None:
        self._fingerprint = fingerprint
        self._reload = reload
        self._tried = fingerprint()
        self._last = self._tried

    def tick(self, now: datetime) -> int:
        """Reloads when the content differs from what was last tried and has not changed since the last look: a file
        that is being written is left alone until it is done. 1 if it reloaded."""
        seen, self._last = self._last, self._fingerprint()
        if self._last is None or self._last != seen or self._last == self._tried:
            return 0
        try:
            self._reload()
        except Unavailable:
            return 0  # The file is not to blame: tried again at the next look.
        except SchedulerError:
            self._tried = self._last
            return 0  # Said by the reload itself; tried again when the content changes.
        self._tried = self._last
        return 1
