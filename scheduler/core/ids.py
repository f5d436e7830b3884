"""Identifiers: UUIDv7 (RFC 9562), ordered by creation within one process."""

from __future__ import annotations

import os
import threading
import time

_BUFFER = 1024
"""Random bytes fetched at once: for each fetch the interpreter lets other threads go first."""

_lock = threading.Lock()
_last = 0
_random = memoryview(b"")


def _forget() -> None:
    """What was forked must not draw the same bytes."""
    global _random
    _random = memoryview(b"")


os.register_at_fork(after_in_child=_forget)


def new_id() -> str:
    """A new UUIDv7. Within one process each is greater than the one before, whatever the clock does."""
    global _last, _random
    with _lock:
        stamp = max(time.time_ns() // 1_000_000 << 12, _last + 1)
        _last = stamp
        if not _random:
            _random = memoryview(os.urandom(_BUFFER))
        drawn, _random = _random[:8], _random[8:]
    random = int.from_bytes(drawn) & ((1 << 62) - 1)
    value = (stamp >> 12 & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | random
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def short(identifier: str) -> str:
    """The last 8 characters: how ids are shown (the first ones are the time and alike for neighbours)."""
    return identifier[-8:]
