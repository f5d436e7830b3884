"""One node under test: a real daemon with a network and a clock of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.chaos.clocks import FakeClock
from tests.chaos.load import SECRET, SECRET_NAME
from tests.chaos.proxy import Proxy
from tests.crash.world import Process, World, children, marked


class Node:
    """`url` is where the database is for it: its proxy, under a user of its own name, so that the server can tell whose
    a connection is. `clocked`: its clock can be set, which makes it slower."""

    def __init__(
        self, name: str, folder: Path, mark: str, proxy: Proxy, url: str, *, clocked: bool, **settings: str
    ) -> None:
        self.name = name
        self.folder = folder
        self.proxy = proxy
        self.clock = FakeClock(folder / f"{name}.clock") if clocked else None
        self.lives = 0
        self._mark = mark
        self._url = _as_user(url, name)
        self._settings = settings
        self.world = self._settle()

    def _settle(self) -> World:
        self.lives += 1
        home = self.folder / f"{self.name}.{self.lives}"
        home.mkdir()
        world = World(home, self._mark, self._url, **{**self._settings, SECRET_NAME: SECRET})
        world.config = self.folder / "jobs.yaml"
        if self.clock is not None:
            # To read the clock's file at every look at the clock costs more than all else that a daemon does.
            unwanted = "FAKETIME_NO_CACHE"
            clock = {name: value for name, value in self.clock.environment.items() if name != unwanted}
            world.settings |= clock | {"FAKETIME_CACHE_DURATION": "1"}
            world.program = ("tests.chaos.clocked",)
        world.log = self.folder / f"{self.name}.log"
        return world

    def move(self) -> None:
        """From its next start on it is another machine: nothing is left of its state directory."""
        self.world = self._settle()

    @property
    def place(self) -> str:
        """Where its runs' files are."""
        return str(self.world.state / "runs")

    @property
    def pid(self) -> int:
        assert self.world.daemon is not None
        return self.world.daemon.pid

    @property
    def alive(self) -> bool:
        return self.world.daemon is not None and self.world.daemon.poll() is None

    @property
    def ready(self) -> bool:
        try:
            return self.alive and self.world.ask("GET", "/readyz", timeout=5.0)[0] == 200
        except OSError:
            return False

    def send(self, number: int) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def processes(self) -> list[Process]:
        """What its jobs started and what still lives."""
        return [one for one in marked(self._mark) if one.place == self.place]

    def everything(self) -> list[int]:
        """The daemon, its supervisor and all below, and what its jobs started."""
        found, fresh = {self.pid}, [self.pid]
        while fresh:
            fresh = [pid for one in fresh for pid in children(one) if pid not in found]
            found.update(fresh)
        return [self.pid, *sorted((found | {one.pid for one in self.processes()}) - {self.pid})]

    def freeze(self) -> None:
        """Stops the whole node, until nothing of it is left that runs."""
        for _ in range(20):
            pids = self.everything()
            running = [pid for pid in pids if not _is_stopped(pid)]
            if not running:
                return
            for pid in running:
                _signal(pid, signal.SIGSTOP)
            time.sleep(0.005)

    def thaw(self) -> None:
        """All of it goes on; its jobs first, for the worst."""
        for pid in reversed(self.everything()):
            _signal(pid, signal.SIGCONT)

    def kill_everything(self) -> None:
        """Like a machine that loses its power: nothing has time to react to the death of another."""
        self.freeze()
        for pid in self.everything():
            _signal(pid, signal.SIGKILL)
        assert self.world.daemon is not None
        self.world.daemon.wait(10)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_stopped(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "TtZX"


def _as_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}"))
