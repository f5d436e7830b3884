"""When runs were asked to end, as far as this daemon was asked itself."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from threading import Lock

KEPT = 10_000


class Asked:
    """The last 10,000 of them. Used from any thread. What was asked of another node, or by a policy, is not known
    here; what ran under a former daemon has ended with it."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._at: OrderedDict[str, datetime] = OrderedDict()

    def note(self, run: str, now: datetime) -> None:
        with self._guard:
            self._at[run] = now
            if len(self._at) > KEPT:
                self._at.popitem(last=False)

    def at(self, run: str) -> datetime | None:
        return self._at.get(run)
