"""Three nodes on one PostgreSQL under load, and the verdict on what they did."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.crash import load
from tests.crash.checker import History, check
from tests.crash.load import LoadJob
from tests.crash.stamps import attempts_of, read_stamps
from tests.crash.world import World
from tests.rolling.pace import Pace, pace
from tests.until import until

NAMES = ("a", "b", "c")
PROMPT = 1.0
"""Seconds after its instant at which a run begins at the latest, on a machine that is not slow."""


def jobs(count: int) -> list[LoadJob]:
    """All of them are due every second. Most are short, some run for several periods, so that whoever leaves has
    something to wait for."""
    made = []
    for number in range(count):
        overlap = "queue" if number % 10 == 9 else "skip"
        seconds = (0.1, 0.1, 1.5, 0.1, 2.5)[number % 5]
        made.append(LoadJob(f"load-{number:03d}", overlap, seconds))
    return made


class Fleet:
    def __init__(self, folder: Path, url: str, count: int) -> None:
        self.folder = folder
        self.url = url
        self.jobs = jobs(count)
        self.mark = uuid.uuid4().hex
        self.stamps = folder / "stamps"
        self.config = folder / "jobs.yaml"
        self.nodes = {name: self._node(name) for name in NAMES}
        load.write(self.config, self.stamps, self.jobs, self.mark)

    def _node(self, name: str, **environment: str) -> World:
        home = self.folder / name
        home.mkdir(exist_ok=True)
        world = World(home, self.mark, self.url, SCHEDULER_DRAIN_TIMEOUT="30s", SCHEDULER_LEASE="30s", **environment)
        world.config = self.config
        return world

    def start(self) -> None:
        for world in self.nodes.values():
            world.start()

    def replace(self, name: str, **environment: str) -> None:
        """That node leaves, by SIGTERM, and another daemon takes its place, with this in its environment."""
        world = self.nodes[name]
        assert world.stop(45) == 0, world.tail()
        self.nodes[name] = self._node(name, **environment)
        self.nodes[name].start()

    def close(self) -> None:
        for world in self.nodes.values():
            if world.daemon is not None and world.daemon.poll() is None:
                os.kill(world.daemon.pid, signal.SIGCONT)
                world.kill()

    # ------------------------------------------------------------ what is known

    def ask(self, name: str, path: str) -> Any:
        status, body = self.nodes[name].get(path)
        assert status == 200, body
        return json.loads(body)

    def lines(self, name: str, event: str) -> list[Mapping[str, Any]]:
        """What that node's daemons logged."""
        text = self.nodes[name].log.read_text(errors="replace").splitlines()
        found = [json.loads(line) for line in text if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def quieten(self) -> tuple[int, int]:
        """The schedules bring nothing more, and all has ended; the first and the last instant of the load."""
        load.write(self.config, self.stamps, self.jobs, self.mark, load.QUIET)
        last = int(time.time())
        for name, world in self.nodes.items():
            status, body = world.ask("POST", "/v1/reload", {})
            if status == 200:
                break
            assert name != NAMES[-1], body
        until(lambda: not any(run.unfinished for run in self._any().read_ledger()[0]), 60.0)
        runs, skips = self._any().read_ledger()
        first = min([run.instant for run in runs if run.instant is not None] + [skip.first for skip in skips])
        return first, last

    def _any(self) -> World:
        return self.nodes[NAMES[0]]

    def problems(self, first: int, last: int, pace: Pace) -> list[str]:
        """Everything that should not have happened. Nothing was killed: only a machine that had no time for anybody
        excuses that an instant was missed."""
        runs, skips = self._any().read_ledger()
        stamps = read_stamps(self.stamps)
        history = History(
            overlaps={job.name: job.overlap for job in self.jobs},
            since=first - 1,
            until=last,
            outages=pace.starved(),
            stamps=stamps,
            runs=runs,
            skips=skips,
            survivors=self._any().survivors(),
        )
        found = list(check(history).problems)
        found += [f"{run.job}: {run.id} is {run.status} ({run.reason})" for run in runs if run.status == "FAILED"]
        found += [f"{run.job}: {run.id} needed {run.attempt} attempts" for run in runs if run.attempt > 1]
        prompt = {job.name for job in self.jobs if job.overlap == "skip"}
        for ran in attempts_of(stamps).values():
            if ran.job in prompt and ran.instant is not None:
                late = ran.first - ran.instant
                if late > PROMPT * pace.slowness(ran.first):
                    found.append(f"{ran.job}: {ran.instant} began {late:.2f} s late")
        return found + self._lost_attempts()

    def _lost_attempts(self) -> list[str]:
        with psycopg.connect(self.url) as connection:
            rows = connection.execute(
                "SELECT run, number, outcome, error FROM attempts WHERE outcome IS DISTINCT FROM 'completed'"
            ).fetchall()
        return [f"attempt {number} of {run}: {outcome}, {error}" for run, number, outcome, error in rows]

    def ran_on(self) -> set[str]:
        """The state directories whose runs wrote something down."""
        return {stamp.place for stamp in read_stamps(self.stamps)}


@contextmanager
def fleet(folder: Path, url: str, count: int) -> Iterator[tuple[Fleet, Pace]]:
    """Started, under load; whatever is left of it is killed."""
    one = Fleet(folder, url, count)
    try:
        with pace() as machine:
            one.start()
            yield one, machine
    finally:
        one.close()
