"""Waits that end."""

from __future__ import annotations

import time
from collections.abc import Callable


class TooLate(Exception):
    """What was waited for did not come."""


def until(condition: Callable[[], object], seconds: float, what: str, step: float = 0.05) -> None:
    """Returns when `condition()` is true. Raises TooLate after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TooLate(f"after {seconds:g} s still not: {what}")
        time.sleep(step)


def sleep_until(instant: float) -> None:
    """`instant`: seconds since 1970."""
    while (left := instant - time.time()) > 0:
        time.sleep(min(left, 1.0))
