"""A command that somebody wraps: it runs as if it had been started directly, and its last lines are known then."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scheduler.cli.passing import Passage, Tail
from scheduler.core.value_object import value_object

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit codes of a shell for a command that cannot be started."""
LINGER = 0.5
"""Seconds after its end for which the rest of its output is waited for; what it left behind may print on after that."""
FROM_KERNEL = 0x80
"""si_code of a signal that a terminal sent: to its whole foreground group, so the command has it already."""

FORWARDED = frozenset(
    getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM")
)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SHELL = "/bin/sh"
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


@value_object
class Ended:
    """`code` as a shell has it: 128 and the number for a signal. `took` in seconds by a clock that never steps; `tail`
    the last bytes of the output that did not go to a terminal, `omitted` how many came before. `error`: why it could
    not be started."""

    code: int
    took: float
    tail: bytes = b""
    omitted: int = 0
    error: str | None = None


class Wrapped:
    """Its descriptors, folder, group, session and limits are ours, and its environment is the one that we were given
    (`environ`, where the system does not tell it); stdout and stderr too where they are a terminal, else they pass
    through us. Signals that we get are passed on."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], tail: int) -> None:
        self._command = list(command)
        given = _given()
        self._environ: Mapping[bytes, bytes] | Mapping[str, str] = environ if given is None else given
        self._tail = Tail(tail)
        self._passages: list[Passage] = []
        self.hurried = False
        """Somebody wanted it to end, and waits."""
        self._ours: set[int] = set()
        """What we wait for; blocked, so that it comes in turn."""
        self._mask: set[Any] = set()
        """What was blocked before: so it is for the command."""

    def run(self, begun: Callable[[], None]) -> Ended:
        """`begun` is called when it runs. Signals stay blocked afterwards: `asked_to_end` tells of them."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._ours = {one for one in FORWARDED if signal.getsignal(one) is not signal.SIG_IGN} | {signal.SIGCHLD}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._ours)
        start = time.monotonic()
        try:
            child = self._spawn()
        except OSError as error:
            code = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
            return Ended(code, 0.0, error=f"cannot run {self._command[0]}: {error.strerror}")
        for one in self._passages:
            one.start()
        begun()
        status = self._wait(child)
        took = time.monotonic() - start
        self._hand_over()
        code = os.waitstatus_to_exitcode(status)
        return Ended(code if code >= 0 else 128 - code, took, *self._tail.kept)

    def asked_to_end(self, seconds: float) -> bool:
        """Waits at most so long for somebody who wants us to end."""
        found = signal.sigtimedwait(self._ours - {signal.SIGCHLD}, seconds)
        return found is not None and found.si_signo in _ENDING

    def _spawn(self) -> int:
        actions, theirs = self._streams()
        try:
            return self._exec(self._command[0], self._command, actions)
        except OSError as error:
            found = shutil.which(self._command[0])
            if error.errno != errno.ENOEXEC or found is None:
                raise
            # A script without #!, which every shell runs by itself.
            return self._exec(_SHELL, [_SHELL, found, *self._command[1:]], actions)
        finally:
            for end in theirs:
                os.close(end)

    def _exec(
        self,
        program: str,
        arguments: list[str],
        actions: list[tuple[int, int, int]],
    ) -> int:
        return os.posix_spawnp(
            program,
            arguments,
            self._environ,
            file_actions=actions,
            setsigmask=self._mask,
            setsigdef=_IGNORED_BY_PYTHON,
        )

    def _streams(self) -> tuple[list[tuple[int, int, int]], list[int]]:
        """What the child does with its descriptors, and our ends to close. Where stdout and stderr are one file there
        is one pipe, which keeps the order of what is written to both."""
        seen = [number for number in (1, 2) if not os.isatty(number)]
        groups = [[1, 2]] if seen == [1, 2] and _same_file(1, 2) else [[number] for number in seen]
        actions, theirs = [], []
        for group in groups:
            source, end = os.pipe()
            self._passages.append(Passage(source, group[0], self._tail))
            actions += [(os.POSIX_SPAWN_DUP2, end, number) for number in group]
            theirs.append(end)
        return actions, theirs

    def _wait(self, child: int) -> int:
        """Until it has ended; passes on what comes meanwhile."""
        while True:
            found = signal.sigwaitinfo(self._ours)
            if found.si_signo == signal.SIGCHLD:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    return status
                continue
            self.hurried = self.hurried or found.si_signo in _ENDING
            if found.si_code != FROM_KERNEL:
                os.kill(child, found.si_signo)

    def _hand_over(self) -> None:
        """Lets the rest of the output through. What the command left behind and still prints goes on through a `cat`,
        so that nothing of it is lost and nobody waits for it."""
        until = time.monotonic() + LINGER
        for one in self._passages:
            one.join(max(0.0, until - time.monotonic()))
        for one in self._passages:
            one.stop()
        for one in self._passages:
            while not one.join(0.1):
                if self.asked_to_end(0):
                    return
        for one in self._passages:
            if not one.over:
                ends = [(os.POSIX_SPAWN_DUP2, one.source, 0), (os.POSIX_SPAWN_DUP2, one.target, 1)]
                with contextlib.suppress(OSError):
                    self._exec("cat", ["cat"], ends)


def _given() -> dict[bytes, bytes] | None:
    """The environment with which this process began; None: the system does not tell it. An interpreter that finds no
    locale there sets LC_CTYPE for itself: with that a command reads what is not UTF-8 by other rules than without us.
    """
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    pairs = (entry.partition(b"=") for entry in entries)
    # Of two with one name programs take the first.
    return {name: value for name, equals, value in reversed(list(pairs)) if name and equals}


def _same_file(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
