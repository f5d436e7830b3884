"""The same faults against what a user would pick instead, as far as they apply. A peer has no ledger, so only what
the children wrote is judged: which instants ran, which ran twice, which runs of a job overlapped, what outlived its
daemon.

Each job is due every second (with cron every minute), and every second one takes longer than its period."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.peers.debian_cron import PEERS as DEBIAN_CRON
from bench.peers.install import HOME, installed
from bench.peers.peer import Command, Task, base_environment
from tests.chaos.plan import DATABASE, Fault
from tests.chaos.postgres import ControlledPostgres
from tests.chaos.proxy import Proxy
from tests.crash.stamps import RESOLUTION, boot
from tests.crash.world import children

PYTHON = HOME / "venv" / "bin" / "python"
ENDING = 5.0
"""Seconds for which what runs at the end may go on."""
CHILD = """#!/bin/sh
stamp() {{ read u _ < /proc/uptime; echo "$1 $2 $$ $u" >> {stamps}; }}
stamp S $1
case $1 in *[13579]) sleep {long};; *) sleep 0.2;; esac
stamp E $1
"""


@dataclass(frozen=True)
class Rival:
    """`package`: its name in bench's list; `period` in seconds; `faults` that apply to it; `places`: how many processes
    share the work; `database`: they share one, each through a proxy."""

    name: str
    package: str
    period: int
    faults: tuple[str, ...]
    places: int
    database: bool
    start: Callable[[Path, int, Path, str], tuple[list[str], dict[str, str]]]


def _cron(folder: Path, jobs: int, child: Path, url: str) -> tuple[list[str], dict[str, str]]:
    """bench knows how to shut it in a mount namespace; its table is written here."""
    task = Task(folder, 0, 0.0, child, True, {})
    (command,) = DEBIAN_CRON[0].commands("idle", task) if not (folder / "cron").exists() else (_again(folder),)
    lines = ["SHELL=/bin/sh", 'MAILTO=""', *(f"* * * * * root {child} job-{number}" for number in range(jobs))]
    (folder / "cron" / "table").write_text("\n".join(lines) + "\n")
    return list(command.argv), {}


def _again(folder: Path) -> Command:
    box = folder / "cron"
    subprocess.run(["rm", "-rf", str(box / "etc"), str(box / "system")], check=True)
    os.rename(box, folder / f"cron.{time.monotonic_ns()}")
    return DEBIAN_CRON[0].commands("idle", Task(folder, 0, 0.0, folder / "child", True, {}))[0]


def _cronstable(folder: Path, jobs: int, child: Path, url: str) -> tuple[list[str], dict[str, str]]:
    lines = ["defaults:", "  utc: true", "jobs:"]
    for number in range(jobs):
        lines += [f"  - name: job-{number}", '    schedule: "* * * * * * *"', "    command:"]
        lines += [f"      - {child}", f"      - job-{number}", "    concurrencyPolicy: Forbid"]
    file = folder / "cronstable.yaml"
    file.write_text("\n".join(lines) + "\n")
    return [str(HOME / "venv" / "bin" / "cronstable"), "-c", str(file), "-l", "WARNING"], {}


def _apscheduler(folder: Path, jobs: int, child: Path, url: str) -> tuple[list[str], dict[str, str]]:
    program = Path(__file__).with_name("peer_program.py")
    driver = url.replace("postgresql://", "postgresql+psycopg://")
    return [str(PYTHON), str(program), driver, str(jobs), str(child)], {"PYTHONPATH": str(program.parent)}


_ALONE = ("kill-daemon", "stop-daemon")
_CUTS = ("cut-drop", "cut-reset", "cut-black-hole", "cut-half-open")
RIVALS = {
    one.name: one
    for one in (
        Rival("cron", "cron", 60, _ALONE, 1, False, _cron),
        Rival("cronstable", "cronstable", 1, _ALONE, 1, False, _cronstable),
        Rival(
            "apscheduler",
            "apscheduler",
            1,
            (*_ALONE, *_CUTS, "restart-fast", "restart-immediate"),
            2,
            True,
            _apscheduler,
        ),
    )
}


class Contest:
    """One campaign against one peer. `folder` must be one that other users may enter."""

    def __init__(self, rival: Rival, folder: Path, jobs: int) -> None:
        if reason := installed(rival.package):
            raise SystemExit(f"{rival.name}: {reason}")
        self._rival = rival
        self._folder = folder
        self._jobs = jobs
        self.stamps = folder / "stamps"
        self._child = folder / "child"
        self._child.write_text(CHILD.format(stamps=self.stamps, long=1.5 * rival.period))
        self._child.chmod(0o755)
        self._postgres = ControlledPostgres(folder / "postgres") if rival.database else None
        self._proxies: list[Proxy] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.survivors = 0

    @property
    def places(self) -> list[str]:
        return [f"n{number}" for number in range(self._rival.places)]

    def run(self, faults: list[Fault], seconds: float) -> Counter[str]:
        try:
            if self._postgres is not None:
                self._postgres.start()
                self._proxies = [Proxy(("127.0.0.1", self._postgres.port)) for _ in self.places]
            for place in self.places:
                self._start(place)
            self._wait_begun()
            begun = time.time()
            lanes = [
                threading.Thread(target=self._lane, args=([one for one in faults if one.whom == whom], begun))
                for whom in {one.whom for one in faults}
            ]
            for lane in lanes:
                lane.start()
            for lane in lanes:
                lane.join()
            _until(begun + seconds)
            until = time.time()
        finally:
            self._close()
        threading.Event().wait(ENDING)
        return self._judge(begun, until)

    # ------------------------------------------------------------ processes

    def _start(self, place: str) -> None:
        number = self.places.index(place)
        url = self._postgres.url(self._proxies[number].port) if self._postgres is not None else ""
        argv, more = self._rival.start(self._folder, self._jobs, self._child, url)
        with (self._folder / f"{place}.log").open("ab") as log:
            self._processes[place] = subprocess.Popen(
                argv, env=base_environment() | more, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder
            )

    def _wait_begun(self) -> None:
        patience = time.monotonic() + 60 + self._rival.period
        while not self.stamps.exists():
            if time.monotonic() > patience:
                raise SystemExit(f"{self._rival.name} starts nothing; see {self._folder}")
            threading.Event().wait(0.1)

    def _close(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        for proxy in self._proxies:
            proxy.close()
        if self._postgres is not None:
            self._postgres.close()

    def _lane(self, faults: list[Fault], begun: float) -> None:
        for fault in faults:
            _until(begun + fault.at)
            begin = time.time()
            for heal in self._befall(fault):
                _until(begin + fault.lasts)
                heal()

    def _befall(self, fault: Fault) -> Iterator[Callable[[], None]]:
        """Does it; then yields what takes it back."""
        if fault.whom == DATABASE:
            assert self._postgres is not None
            self._postgres.stop(fault.kind.removeprefix("restart-"))
            yield self._postgres.start
            return
        process = self._processes[fault.whom]
        if fault.kind == "kill-daemon":
            below = children(process.pid)
            process.kill()
            process.wait()
            yield lambda: self._start(fault.whom)
            self.survivors += sum(Path(f"/proc/{pid}").exists() for pid in below)
        elif fault.kind == "stop-daemon":
            process.send_signal(signal.SIGSTOP)
            yield lambda: process.send_signal(signal.SIGCONT)
        else:
            proxy = self._proxies[self.places.index(fault.whom)]
            acts = {
                "cut-drop": proxy.drop,
                "cut-reset": proxy.reset,
                "cut-black-hole": proxy.black_hole,
                "cut-half-open": proxy.half_open,
            }
            acts[fault.kind]()
            yield proxy.pass_through

    # ------------------------------------------------------------ the verdict

    def _judge(self, begun: float, until: float) -> Counter[str]:
        """An instant ran if a child of its job began within the period that it opens."""
        booted = boot()
        starts: dict[str, list[tuple[float, str]]] = defaultdict(list)
        ends: dict[tuple[str, str], float] = {}
        for line in self.stamps.read_text().splitlines():
            kind, job, pid, uptime = line.split()
            if kind == "S":
                starts[job].append((booted + float(uptime), pid))
            else:
                ends[job, pid] = booted + float(uptime)
        figures: Counter[str] = Counter(survivors=self.survivors)
        period = self._rival.period
        for number in range(self._jobs):
            job = f"job-{number}"
            own = sorted(starts[job])
            counted = Counter(int(at // period) for at, _ in own)
            instants = range(int(begun // period) + 1, int(until // period))
            spans = [(at, ends.get((job, pid), at)) for at, pid in own]
            latest = 0.0
            for instant in instants:
                figures["expected"] += 1
                busy = any(at < instant * period <= end + 1 for at, end in spans)
                figures["ran"] += counted[instant] > 0
                figures["ran twice"] += counted[instant] > 1
                figures["did not run, a run was in the way"] += counted[instant] == 0 and busy
                figures["lost without a word"] += counted[instant] == 0 and not busy
            for at, end in spans:
                figures["overlaps"] += at < latest - RESOLUTION
                latest = max(latest, end)
        return figures


def contest(name: str, folder: Path, faults: list[Fault], seconds: float, jobs: int) -> Iterator[str]:
    """Line by line what became of it."""
    figures = Contest(RIVALS[name], folder, jobs).run(faults, seconds)
    for what, figure in sorted(figures.items()):
        yield f"{what:40} {figure}"


def _until(real: float) -> None:
    threading.Event().wait(max(0.0, real - time.time()))
