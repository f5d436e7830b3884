"""What an attempt reports is nobody else's to read, also where others pass through to files of their own."""

from __future__ import annotations

import os
from pathlib import Path


def passable(directory: str | Path) -> bool:
    """Whether others reach what is in it, if they know its name."""
    return bool(os.stat(directory).st_mode & 0o011)


def keep_to_owner(report: str | Path) -> None:
    """A report that nobody else can read, there before its first line: whoever appends that makes it as he likes."""
    descriptor = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
