"""How late a job is that is due every second, seen from the stamps of its children alone."""

from __future__ import annotations

from collections.abc import Sequence


def lateness(started: Sequence[float], first: int, last: int) -> list[float]:
    """For each second from `first` to `last` (both included): until the next start at or after it. `started` is
    sorted. A second that had no start of its own is as late as the one after it, and a second more. ValueError if
    nothing started after the last."""
    found = []
    at = 0
    for second in range(first, last + 1):
        while at < len(started) and started[at] < second:
            at += 1
        if at == len(started):
            raise ValueError(f"nothing has started since second {second}")
        found.append(started[at] - second)
    return found
