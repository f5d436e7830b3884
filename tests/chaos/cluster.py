"""What a campaign runs on: a PostgreSQL of its own, nodes, and the jobs file that they share."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from tests.chaos import load
from tests.chaos.clocks import DatabaseClock
from tests.chaos.load import ChaosJob
from tests.chaos.log import Log, Swap
from tests.chaos.node import Node
from tests.chaos.plan import DATABASE
from tests.chaos.postgres import ControlledPostgres
from tests.chaos.proxy import Proxy
from tests.crash.checker import AttemptRow, RunRow, SkipRow
from tests.crash.stamps import Stamp, read_stamps
from tests.crash.world import World, marked

PATIENCE = 60.0
"""Seconds in which a node is well again after its trouble is over, and the database with it."""


class Cluster:
    """`clocked`: whose clocks can be set (names of nodes, DATABASE)."""

    def __init__(
        self, folder: Path, names: list[str], jobs: list[ChaosJob], lease: float, log: Log, clocked: set[str]
    ) -> None:
        self.folder = folder
        self.jobs = jobs
        self.log = log
        self.mark = uuid.uuid4().hex
        self.stamps = folder / "stamps"
        self.clock = DatabaseClock(folder / "postgres.clock") if DATABASE in clocked else None
        self.postgres = ControlledPostgres(folder / "postgres")
        self.well = threading.Event()
        """The database is not in trouble."""
        self.reloads = 0
        self.nodes: dict[str, Node] = {}
        self._names = names
        self._clocked = clocked
        self._settings = {"SCHEDULER_LEASE": f"{lease:g}s", "SCHEDULER_DRAIN_TIMEOUT": "15s"}
        self._reloading = threading.Lock()

    def start(self) -> None:
        """All nodes are ready, and the first schedules are in force."""
        self.postgres.start()
        self.well.set()
        with self.postgres.connect() as connection:
            for name in self._names:
                connection.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN").format(sql.Identifier(name)))
            if self.clock is not None:
                self.clock.install(connection)
        periods = load.periods(self.jobs, 0)
        (self.folder / "jobs.yaml").write_text(load.text(self.jobs, self.stamps, self.mark, periods, 0))
        asked = time.time()
        for name in self._names:
            proxy = Proxy(("127.0.0.1", self.postgres.port))
            url = self.postgres.url(proxy.port)
            node = self.nodes[name] = Node(
                name, self.folder, self.mark, proxy, url, clocked=name in self._clocked, **self._settings
            )
            self.log.places[node.place] = name
            node.world.launch()
        for node in self.nodes.values():
            node.world.wait_ready(PATIENCE)
        self.log.swaps.append(Swap(asked, time.time(), periods))

    def close(self) -> None:
        """Ends everything, whatever state it is in."""
        for node in self.nodes.values():
            if node.alive:
                node.kill_everything()
        for process in marked(self.mark):
            process.kill()
        for node in self.nodes.values():
            node.proxy.close()
        self.postgres.close()

    # ------------------------------------------------------------ what people do

    def ask(
        self,
        chance: random.Random,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        timeout: float = 5.0,
    ) -> tuple[int, bytes]:
        """Of a node, and of another one as long as none gives a final answer within `timeout`. TimeoutError if none
        does."""
        until = time.monotonic() + patience
        last = "nothing"
        while time.monotonic() < until:
            node, asked = chance.choice(list(self.nodes.values())), time.time()
            try:
                status, answer = node.world.ask(method, path, body, headers, timeout)
            except TimeoutError:
                status, answer = 503, b"no answer"
                self.log.strays.append((asked, path))
            except OSError as error:
                status, answer = 503, str(error).encode()
            if status < 500:
                return status, answer
            last = f"{node.name}: {status} {answer.decode(errors='replace')}"
            threading.Event().wait(0.1)
        raise TimeoutError(f"no node answers {method} {path}; the last said: {last}")

    def reload(self, chance: random.Random, *, quiet: bool = False) -> None:
        """Puts another file in force, `quiet`: one that brings no more instants."""
        with self._reloading:
            self.reloads += 1
            periods = load.periods(self.jobs, self.reloads)
            if quiet:
                periods = dict.fromkeys(periods)
            text = load.text(self.jobs, self.stamps, self.mark, periods, self.reloads)
            fresh = self.folder / "jobs.yaml.new"
            fresh.write_text(text)
            asked = time.time()
            fresh.rename(self.folder / "jobs.yaml")
            status, answer = self.ask(chance, "POST", "/v1/reload", {})
            self.log.swaps.append(Swap(asked, time.time(), periods))
            if status != 200:
                self.log.complaints.append((asked, f"a reload was answered {status}: {answer.decode()}"))

    # ------------------------------------------------------------ what is known at the end

    def unfinished(self) -> int:
        with self.postgres.connect() as connection:
            row = connection.execute("SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING')").fetchone()
        assert row is not None
        return int(row[0])

    def read_stamps(self) -> list[Stamp]:
        return read_stamps(self.stamps)

    def read_ledger(self) -> tuple[list[RunRow], list[SkipRow], list[AttemptRow]]:
        world = World(self.folder, self.mark, self.postgres.url())
        return *world.read_ledger(), world.read_attempts()

    def audit(self, chance: random.Random) -> list[str]:
        """Jobs that are not clean, as the nodes themselves say."""
        status, body = self.ask(chance, "GET", "/v1/audit", timeout=PATIENCE)
        assert status == 200, body
        return [f"audit: {one}" for one in json.loads(body)["jobs"] if not one["clean"]]

    def in_transaction(self, name: str) -> bool:
        """Whether the server has a transaction of this node open."""
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND xact_start IS NOT NULL "
            "AND state = 'idle in transaction'"
        )
        try:
            with self.postgres.connect() as connection:
                row = connection.execute(query, [name]).fetchone()
        except psycopg.Error:
            return False
        return row is not None and bool(row[0])
