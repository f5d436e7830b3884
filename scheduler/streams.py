"""The standard streams of a program that was started without some of them (`>&-`)."""

from __future__ import annotations

import os
import sys
from typing import TextIO

STDIN, STDOUT, STDERR = 0, 1, 2


def open_missing_streams(*, lose_output: bool) -> None:
    """Afterwards descriptors 0, 1 and 2 are open, so that no file or socket can get one of these numbers, and
    `sys.stdin`, `sys.stdout` and `sys.stderr` exist.

    A closed stdin is empty, a closed stderr loses what is written. So does a closed stdout with `lose_output`; without
    it every write fails (EBADF): an answer that nobody gets is no success."""
    for number, flags in (
        (STDIN, os.O_RDONLY),
        (STDOUT, os.O_WRONLY if lose_output else os.O_RDONLY),
        (STDERR, os.O_WRONLY),
    ):
        if not _is_open(number):
            _point(number, flags)
    sys.stdin = sys.stdin or open(STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or _writer(STDOUT)
    sys.stderr = sys.stderr or _writer(STDERR)


def discard(number: int) -> None:
    """From now on what is written to this descriptor is lost, also what a stream still holds back: the interpreter
    writes that at its end, and would complain."""
    _point(number, os.O_WRONLY)


def let_go() -> None:
    """At the end of a program whose result does not depend on who listens: what can still be written is, what cannot be
    (a terminal that was closed, a full disk) is lost, and does not change the exit status."""
    for stream, number in ((sys.stdout, STDOUT), (sys.stderr, STDERR)):
        try:
            stream.flush()
        except OSError:
            discard(number)


def tell(text: str) -> None:
    """Writes this to stderr; where nobody can hear it, it is lost."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(STDERR)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _point(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)


def _writer(number: int) -> TextIO:
    return open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
