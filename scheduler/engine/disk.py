"""The disks that this daemon needs: whether there is room left on them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import structlog

log = structlog.get_logger("engine")

LEAST = 1 << 20
"""Bytes; with less a disk counts as full: neither the database nor what a run prints can grow."""
EVERY = timedelta(seconds=5)


class Disk:
    """`full` maps each folder whose disk is full to when that was first seen.

    A look may take as long as a disk takes to answer: it belongs into a loop of its own."""

    def __init__(self, folders: Collection[Path]) -> None:
        self.folders = tuple(dict.fromkeys(folders))
        self._last: datetime | None = None
        self.full: Mapping[Path, datetime] = {}

    def tick(self, now: datetime) -> int:
        """Looks every 5 s; the number of folders without room."""
        if self._last is not None and timedelta(0) <= now - self._last < EVERY:
            return len(self.full)
        self._last = now
        found = {folder: self.full.get(folder, now) for folder in self.folders if _is_full(folder)}
        for folder in found.keys() - self.full.keys():
            log.error("disk_full", folder=str(folder))
        for folder in self.full.keys() - found.keys():
            log.info("disk_has_room", folder=str(folder))
        self.full = found
        return len(found)


def _is_full(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False  # Gone or not ours: whoever needs it says so.
    without_files = found.f_files > 0 and found.f_favail == 0
    return found.f_bavail * found.f_frsize < LEAST or without_files
