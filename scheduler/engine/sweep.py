"""The rounds over the locks that runs wait for: a wake-up that was missed is made up for."""

from __future__ import annotations

from collections.abc import Callable

EVERY = 1.0
"""Seconds between two parts of a round."""


class Sweep:
    """A round begins whenever somebody looks. If there are so many locks that one look sees but a part of them, the
    next part is due a second later: what waits must not cost those who run. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._after = ""
        self._seen = 0.0

    def begin(self) -> str | None:
        """The lock after which to look; None: not now."""
        if self._after and 0 <= self._clock() - self._seen < EVERY:
            return None
        return self._after

    def looked(self, after: str) -> None:
        """After the commit; `after` is the last lock that was seen, "" at the end of the round."""
        self._after, self._seen = after, self._clock()
