"""Waiting for a condition that another thread or process brings about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_never = threading.Event()


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Returns when `condition()` is true; AssertionError after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        _never.wait(0.02)
