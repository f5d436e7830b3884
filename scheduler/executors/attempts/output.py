"""What an attempt printed: read with its secrets masked, and trimmed on disk while it goes on printing."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from scheduler.core.masking import Masks, Span, replaced
from scheduler.core.value_object import value_object

_BLOCK = 4096
_PUNCH_KEEPING_SIZE = 0x03  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE


@value_object
class Excerpt:
    """The first and the last bytes and the number left out between them (before masking)."""

    head: bytes
    tail: bytes
    omitted: int


class OutputFile:
    """A file that somebody appends to, of which the first and the last half of `limit` bytes are kept.

    The middle is given back to the disk by punching holes, so that the writer, who appends through a descriptor of
    his own, notices nothing; where the file system has no holes the file just grows. Not for two threads at once.
    """

    def __init__(self, path: str | Path, limit: int, masks: Masks) -> None:
        self._path = path
        self._half = max(limit // 2, 1)
        self._masks = masks
        self._punched = 0

    def read(self, *, complete: bool) -> Excerpt:
        """What is there now. While the attempt goes on (`complete` False) bytes at the end that may be the beginning
        of a secret are left for the next time. A missing file is empty output."""
        try:
            if not os.stat(self._path, follow_symlinks=False).st_size:
                return Excerpt(b"", b"", 0)
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return Excerpt(b"", b"", 0)
        try:
            return self._read(descriptor, os.fstat(descriptor).st_size, complete)
        finally:
            os.close(descriptor)

    def trim(self) -> bool:
        """Free the middle if it has grown by at least `limit` since the last time; whether anything was freed."""
        try:
            size = os.stat(self._path).st_size
        except FileNotFoundError:
            return False
        start = max(_up(self._half + self._masks.longest), self._punched)
        end = _down(size - self._half - self._masks.longest)
        if end - start < max(2 * self._half, _BLOCK):
            return False
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self._punched = end
            return _punch(descriptor, start, end - start)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int, size: int, complete: bool) -> Excerpt:
        margin = self._masks.longest
        if size <= 2 * self._half + 2 * margin:
            whole = self._finished(os.pread(descriptor, size, 0), complete)
            spans = self._masks.spans(whole)
            if len(whole) <= 2 * self._half:
                return Excerpt(replaced(whole, spans), b"", 0)
            return self._cut(whole, spans, whole, spans, 0)
        first = os.pread(descriptor, self._half + margin, 0)
        start = size - self._half - margin
        last = self._finished(os.pread(descriptor, size - start, start), complete)
        return self._cut(first, self._masks.spans(first), last, self._masks.spans(last), start)

    def _finished(self, data: bytes, complete: bool) -> bytes:
        return data if complete else data[: len(data) - self._masks.begun(data)]

    def _cut(self, first: bytes, in_first: list[Span], last: bytes, in_last: list[Span], offset: int) -> Excerpt:
        """Both ends without half a secret at their inner edges; `last` begins at `offset` of the file."""
        head_end = self._half
        for start, end in in_first:
            if start < head_end < end:
                head_end = end
        tail_start = max(len(last) - self._half, head_end - offset, 0)
        for start, end in in_last:
            if start < tail_start < end:
                tail_start = end
        head = replaced(first[:head_end], [span for span in in_first if span[1] <= head_end])
        shifted = [(s - tail_start, e - tail_start) for s, e in in_last if s >= tail_start]
        return Excerpt(head, replaced(last[tail_start:], shifted), tail_start + offset - head_end)


def _up(number: int) -> int:
    return -(-number // _BLOCK) * _BLOCK


def _down(number: int) -> int:
    return number // _BLOCK * _BLOCK


def _punch(descriptor: int, start: int, length: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "fallocate"):
        return False
    result = libc.fallocate(descriptor, _PUNCH_KEEPING_SIZE, ctypes.c_int64(start), ctypes.c_int64(length))
    return int(result) == 0
