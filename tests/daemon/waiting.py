"""Waits that end: for a condition, with a time-out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], timeout: float, what: str, step: float = 0.05) -> None:
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, f"after {timeout:g} s still not: {what}"
        threading.Event().wait(step)
