"""Several real daemons on one PostgreSQL, each behind a network of its own that can be broken."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.chaos.postgres import ControlledPostgres
from tests.chaos.proxy import Proxy
from tests.crash.checker import RunRow, SkipRow
from tests.crash.stamps import Stamp, read_stamps
from tests.crash.world import World
from tests.faults import load
from tests.faults.load import FaultJob


class FaultNode:
    """A daemon and the proxy through which it reaches the database."""

    def __init__(self, name: str, folder: Path, config: Path, mark: str, postgres: ControlledPostgres, **settings: str):
        self.name = name
        self.proxy = Proxy(("127.0.0.1", postgres.port))
        home = folder / name
        home.mkdir()
        self.world = World(home, mark, f"{postgres.url(self.proxy.port)}?application_name={name}", **settings)
        self.world.config = config

    @property
    def pid(self) -> int:
        assert self.world.daemon is not None
        return self.world.daemon.pid

    def ledger_id(self) -> str:
        """By which the ledger knows the node that it is now."""
        return str(self.events("started")[-1]["node"])

    @property
    def ready(self) -> bool:
        try:
            return self.world.ask("GET", "/readyz", timeout=5.0)[0] == 200
        except OSError:
            return False

    def why_not_ready(self) -> str:
        return self.world.ask("GET", "/readyz", timeout=5.0)[1].decode()

    def send(self, number: int) -> None:
        assert self.world.daemon is not None
        self.world.daemon.send_signal(number)

    def events(self, name: str) -> list[dict[str, Any]]:
        """What it logged under that name."""
        found = []
        for line in self.world.log.read_text().splitlines():
            if line.startswith("{"):
                entry = json.loads(line)
                if entry["event"] == name:
                    found.append(entry)
        return found

    def close(self) -> None:
        daemon = self.world.daemon
        if daemon is not None and daemon.poll() is None:
            daemon.send_signal(signal.SIGCONT)
            self.world.kill()
        self.proxy.close()


class FaultNodes:
    """As a context manager: `count` daemons that are ready. Whatever still runs at its end is killed."""

    def __init__(
        self, folder: Path, postgres: ControlledPostgres, jobs: Iterable[FaultJob], count: int, **settings: str
    ) -> None:
        self.jobs = list(jobs)
        self.mark = uuid.uuid4().hex
        self.stamps_file = folder / "stamps"
        self.postgres = postgres
        config = folder / "jobs.yaml"
        config.write_text(load.text(self.jobs, self.stamps_file, self.mark))
        self.nodes = [
            FaultNode(f"node-{number}", folder, config, self.mark, postgres, **settings) for number in range(count)
        ]

    def __enter__(self) -> FaultNodes:
        try:
            with ThreadPoolExecutor(len(self.nodes)) as threads:
                for started in [threads.submit(node.world.start) for node in self.nodes]:
                    started.result()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        for node in self.nodes:
            node.close()

    def stamps(self) -> list[Stamp]:
        return read_stamps(self.stamps_file)

    def ledger(self) -> tuple[list[RunRow], list[SkipRow]]:
        """Read past the proxies."""
        world = World(self.nodes[0].world.folder, self.mark, self.postgres.url())
        return world.read_ledger()

    def survivors(self) -> list[str]:
        return self.nodes[0].world.survivors()

    def run_now(self, node: FaultNode, job: str) -> str:
        run = self.ask_for(node, job)
        assert run is not None, "the node has no database"
        return run

    def ask_for(self, node: FaultNode, job: str) -> str | None:
        """The run that is promised. None: the node says that it has no database."""
        status, body = node.world.ask("POST", f"/v1/jobs/{job}/runs", {"payload": 1})
        if status == 503:
            return None
        assert status == 202, body
        return str(json.loads(body)["run_id"])

    def begun(self, run: str, after: int = 0) -> Stamp | None:
        """The start of its latest attempt, if that is one after the given one."""
        found = [one for one in self.stamps() if one.run == run and one.kind == "S" and one.attempt > after]
        return max(found, key=lambda one: one.attempt, default=None)

    def home_of(self, stamp: Stamp) -> FaultNode:
        """The node whose child wrote it."""
        return next(node for node in self.nodes if stamp.place.startswith(str(node.world.state)))

    def audit(self, node: FaultNode, since: float) -> list[str]:
        """What a daemon's own audit of all that was due since then finds missing; it leaves out the last minute."""
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
        status, body = node.world.get(f"/v1/audit?since={start}")
        assert status == 200, body
        return [str(one) for one in json.loads(body)["jobs"] if not one["clean"]]

    def uncovered(self, since: int, until: int) -> list[str]:
        """Instants of jobs that are due every second, after `since` up to `until`, that have no entry or several."""
        runs, skips = self.ledger()
        covered: dict[str, list[int]] = {job.name: [] for job in self.jobs if job.schedule == load.EVERY_SECOND}
        for run in runs:
            if run.job in covered and run.instant is not None:
                covered[run.job].append(run.instant)
        for skip in skips:
            if skip.job in covered:
                covered[skip.job] += range(skip.first, skip.last + 1)
        problems = []
        for job, instants in covered.items():
            counts = {at: instants.count(at) for at in range(since + 1, until + 1)}
            problems += [f"{job}: {n} entries of instant {at}" for at, n in counts.items() if n != 1]
        return problems
