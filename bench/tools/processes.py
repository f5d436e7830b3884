"""Processes and what they cost, read from /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """`cpu`: seconds, of children that were waited for too; `rss` and `pss`: bytes (pss shares what is shared)."""

    cpu: float
    rss: int
    pss: int


class Group:
    """Processes started for one purpose, each in a session of its own; only these are ever signalled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, argv: Iterable[str], environment: Mapping[str, str], cwd: Path | None = None) -> None:
        with self._log(len(self.started)).open("ab") as log:
            process = subprocess.Popen(
                list(argv),
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)

    def alive(self) -> bool:
        return any(process.poll() is None for process in self.started)

    def stop(self, how: signal.Signals = signal.SIGTERM, patience: float = 10) -> None:
        """Ends all of them; what does not obey within `patience` seconds is killed with its whole session."""
        for process in reversed(self.started):
            with suppress(ProcessLookupError):
                process.send_signal(how)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def tail(self, length: int = 400) -> str:
        """The last words of each."""
        words = []
        for number in range(len(self.started)):
            text = self._log(number).read_text(errors="replace").strip()
            words.append(text[-length:].replace("\n", " ⏎ "))
        return " | ".join(filter(None, words))

    def _log(self, number: int) -> Path:
        return self._folder / f"log.{number}"


def tree(roots: Iterable[int]) -> list[int]:
    """These processes and all below them."""
    found: list[int] = []
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        found.append(pid)
        for task in tasks:
            with suppress(OSError):
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def cost(pids: Iterable[int]) -> dict[int, Cost]:
    """What each of these that still lives has used and holds."""
    costs = {}
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024
            costs[pid] = Cost(sum(map(int, fields[11:15])) / _TICKS, rss, pss)
    return costs


def peak_from_now(pid: int) -> None:
    """Forgets how much memory that process has held before."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak(pid: int) -> int:
    """The most bytes of memory that it held since."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


class Others:
    """How many CPUs everybody else used since this was made: so that a figure taken on a busy machine shows it."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._busy = _busy()
        self._own = self._ours()

    def cpus(self) -> float:
        own = sum(used - self._own.get(pid, 0.0) for pid, used in self._ours().items())
        return max(0.0, _busy() - self._busy - own) / max(1e-3, time.monotonic() - self._since)

    @staticmethod
    def _ours() -> dict[int, float]:
        return {pid: used for pid in tree([os.getpid(), *_SERVERS]) if (used := _cpu(pid)) is not None}


_SERVERS: set[int] = set()


def ours(pid: int) -> None:
    """A server that was started for us but is not our child."""
    _SERVERS.add(pid)


def _cpu(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / _TICKS


def _busy() -> float:
    with open("/proc/stat") as file:
        values = [int(word) for word in file.readline().split()[1:9]]
    return (sum(values) - values[3] - values[4]) / _TICKS
