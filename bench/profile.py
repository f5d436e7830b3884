"""Where a daemon's time goes while it is measured, its supervisor's and workers' too: py-spy samples what runs."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from contextlib import suppress

from bench.peers.install import HOME, installed
from bench.results import FOLDER

_RATE = 100
"""Samples per second."""
_SHOWN = 25


class Profile:
    """Records from its beginning to its end; writes `.results/NAME.folded` (for a flame graph) and `NAME.txt`."""

    def __init__(self, pid: int, name: str) -> None:
        if reason := installed("py-spy"):
            raise RuntimeError(f"no profile without py-spy: {reason}")
        FOLDER.mkdir(exist_ok=True)
        self._folded = FOLDER / f"{name.replace(' ', '-').lower()}.folded"
        command = ["record", "--format", "raw", "--rate", str(_RATE), "--threads", "--nonblocking", "--subprocesses"]
        self._spy = subprocess.Popen(
            [str(HOME / "venv" / "bin" / "py-spy"), *command, "--output", str(self._folded), "--pid", str(pid)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *error: object) -> None:
        self._spy.send_signal(signal.SIGINT)
        self._spy.wait(60)
        with suppress(FileNotFoundError):  # It has nothing to say of a daemon that ended first.
            self._folded.with_suffix(".txt").write_text(summary(self._folded.read_text(errors="replace")))


def summary(folded: str) -> str:
    """The functions in which time was spent, and the lines of the product on the way to it, in parts of all samples."""
    total = 0
    own: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, number = line.rpartition(" ")
        if not number.isdecimal():
            continue  # Read while it was being changed: the daemon is not stopped for a sample.
        frames = stack.split(";")
        total += int(number)
        own[frames[-1]] += int(number)
        for frame in {one for one in frames if "scheduler/" in one}:
            below[frame] += int(number)
    total = max(total, 1)
    lines = [f"{total} samples, {_RATE} per second and running thread", "", "in this line itself:"]
    lines += [f"{count / total:6.1%}  {frame}" for frame, count in own.most_common(_SHOWN)]
    lines += ["", "in this line of the product and what it calls:"]
    lines += [f"{count / total:6.1%}  {frame}" for frame, count in below.most_common(2 * _SHOWN)]
    return "\n".join(lines) + "\n"
