"""The mark of a run: its soft RLIMIT_MSGQUEUE, which fork, exec, setsid and `env -i` keep.

Soft limit = base − slot; the base is the hard limit (so slot 0, the supervisor itself, has the whole of it)
and a slot belongs to one run until every process that carries its mark is gone.
"""

from __future__ import annotations

import heapq
import resource

# POSIX message queues of this size do not exist, so a limit lowered from "unlimited" to here limits
# nothing.
_UNLIMITED_BASE = 1 << 40


class Marks:
    """Gives slots out, lowest first. Where the hard limit has no room for a slot, runs carry no mark."""

    def __init__(self) -> None:
        soft, self._hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
        self._base = _UNLIMITED_BASE if self._hard == resource.RLIM_INFINITY else self._hard
        if soft != self._base:
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (self._base, self._hard))
        self._free: list[int] = []
        self._next = 1

    def take(self) -> int:
        """A slot that no living process carries."""
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, slot: int) -> None:
        """The last process with this mark is gone."""
        heapq.heappush(self._free, slot)

    def put_on(self, slot: int) -> None:
        """Mark the calling process, and with it all its descendants to come."""
        if slot < self._base:
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (self._base - slot, self._hard))

    def slot_of(self, mark: int | None) -> int | None:
        """The slot that a mark stands for, if it is one of those given out so far."""
        if mark is None or not 0 < self._base - mark < self._next:
            return None
        return self._base - mark
