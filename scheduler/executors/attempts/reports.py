"""Lines of JSON that an attempt appends to $SCHED_REPORT_FILE, read as they come."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from scheduler.core.model import Json
from scheduler.core.value_object import value_object
from scheduler.executors.attempts.values import RESULT_LIMIT, clean_text, parse

LINE_LIMIT = 64 * 1024
"""Bytes of a line; one that carries a result may have `RESULT_LIMIT`."""
MESSAGE_LIMIT = 1000
"""Characters of a message; the rest is cut off."""
_LONGEST_LINE = RESULT_LIMIT + 1024
_CHUNK = 64 * 1024
_AT_ONCE = 4 * 1024 * 1024


@value_object
class Reported:
    """The newest of each kind; None where nothing has been reported."""

    progress: float | None = None
    message: str | None = None
    result: Json = None
    checkpoint: Json = None


class ReportReader:
    """Reads what was appended since the last time. Lines that are no JSON object, too long or of the wrong type are
    ignored; `ignored` counts them and `first_problem` describes the first. Not for two threads at once."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._offset = 0
        self._partial = b""
        self._overlong = False
        self.reported = Reported()
        self.ignored = 0
        self.first_problem = ""

    def read(self, *, complete: bool = False) -> bool:
        """Take in whole lines (at most 4 MiB of them per call); with `complete` everything, a last line without
        newline included. Whether `reported` changed."""
        before = self.reported
        try:
            status = os.stat(self._path, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_size > self._offset:
                self._open_and_take(complete)
        except OSError:
            return False
        if complete and (self._partial or self._overlong):
            self._line(self._partial)
            self._partial = b""
        return self.reported != before

    def _open_and_take(self, complete: bool) -> None:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            self._take(descriptor, complete)
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int, complete: bool) -> None:
        end = None if complete else self._offset + _AT_ONCE
        while end is None or self._offset < end:
            chunk = os.pread(descriptor, _CHUNK, self._offset)
            if not chunk:
                return
            self._offset += len(chunk)
            *lines, rest = (self._partial + chunk).split(b"\n")
            for line in lines:
                self._line(line)
            if len(rest) > _LONGEST_LINE:
                self._overlong, rest = True, b""
            self._partial = rest

    def _line(self, line: bytes) -> None:
        try:
            if self._overlong or len(line) > _LONGEST_LINE:
                self._overlong = False
                raise ValueError("a line longer than 256 KiB")
            if line.strip():
                self._note(line)
        except ValueError as error:
            self.ignored += 1
            self.first_problem = self.first_problem or str(error)

    def _note(self, line: bytes) -> None:
        try:
            said = parse(line)
        except ValueError:
            raise ValueError("a line that is not JSON") from None
        if not isinstance(said, dict):
            raise ValueError('a line that is not an object such as {"progress": 40}')
        if len(line) > LINE_LIMIT and "result" not in said:
            raise ValueError("a line longer than 64 KiB without a result")
        known = {key: said[key] for key in ("progress", "message", "result", "checkpoint") if key in said}
        if not known:
            raise ValueError("a line with none of progress, message, result, checkpoint")
        if "progress" in known:
            known["progress"] = _percent(known["progress"])
        if "message" in known:
            if not isinstance(known["message"], str):
                raise ValueError("a message that is not text")
            known["message"] = clean_text(known["message"])[:MESSAGE_LIMIT]
        self.reported = replace(self.reported, **known)


def _percent(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100:
        raise ValueError("a progress that is not a number from 0 to 100")
    return float(value)
