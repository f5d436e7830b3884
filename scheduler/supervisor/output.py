"""The output file of an attempt: written by the child alone, read and trimmed by the daemon.

Of a file longer than `limit`, the first and the last half of the limit are kept. What lies between is given
back to the file system by punching a hole, while the child goes on appending; the size never shrinks, so
offsets stay true.
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from pathlib import Path

LOG_LIMIT = 1 << 20
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
_WORTH_PUNCHING = 64 * 1024  # bytes; smaller holes wait for the next time

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes from `offset` on; `omitted` bytes before them, after the offset asked for, are not kept."""

    offset: int
    data: bytes
    omitted: int

    @property
    def end(self) -> int:
        """Where to read on."""
        return self.offset + len(self.data)


def create(path: Path) -> int:
    """A new file, 0600: its append-only descriptor for the child; FileExistsError if it exists."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


class OutputFile:
    """Any bytes, any number of readers in any process; one daemon trims. Safe to use from several threads."""

    def __init__(self, path: Path, *, limit: int = LOG_LIMIT) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._half = limit // 2
        self._punched_to = self._half
        self._can_punch = True
        self._trimming = threading.Lock()

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *_about: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this reader; the child's descriptor is its own."""
        os.close(self._fd)

    @property
    def size(self) -> int:
        """Bytes written so far, kept or not."""
        return os.fstat(self._fd).st_size

    @property
    def omitted(self) -> int:
        """Bytes between the two halves that are kept, as of now."""
        return max(0, self.size - 2 * self._half)

    def trim(self) -> bool:
        """Give back the disk space of what is not kept; False where the file system cannot do that."""
        with self._trimming:
            end = self.size - self._half
            if self._can_punch and end - self._punched_to >= _WORTH_PUNCHING:
                length = end - self._punched_to
                done = _libc.fallocate(self._fd, _PUNCH_HOLE | _KEEP_SIZE, self._punched_to, length) == 0
                if done:
                    self._punched_to = end
                else:
                    self._can_punch = False
            return self._can_punch

    def read(self, offset: int, most: int = 64 * 1024) -> Piece:
        """What is kept from `offset` on, at most `most` bytes; no data at the end of what was written."""
        if offset < self._half:
            data = os.pread(self._fd, min(most, self._half - offset), offset)
            return Piece(offset, data, 0)
        start = max(offset, self.size - self._half)
        while True:
            data = os.pread(self._fd, most, start)
            # What was written meanwhile moved the tail, and a trim perhaps the hole, into what was read.
            late = max(0, self.size - self._half - start)
            start += late
            if late == 0 or late < len(data):
                return Piece(start, data[late:], start - offset)

    def kept(self) -> bytes:
        """All that is kept, with a mark in place of the rest."""
        head = os.pread(self._fd, self._half, 0)
        parts = [head]
        offset = len(head)
        while len(head) == self._half and (piece := self.read(offset)).data:
            if piece.omitted:
                parts.append(mark(piece.omitted))
            parts.append(piece.data)
            offset = piece.end
        return b"".join(parts)


def mark(omitted: int) -> bytes:
    """The line that stands for bytes that were not kept."""
    return f"\n[... {omitted:,} bytes omitted ...]\n".encode("ascii")
