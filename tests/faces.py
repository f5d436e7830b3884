"""A daemon's faces for tests: engine, store and HTTP app as they are, with a clock that tests turn."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from scheduler.cli.main import run
from scheduler.cli.surface import Surface
from scheduler.core.model import Output
from scheduler.core.remark import Remark
from scheduler.engine.gate import TokenGate
from scheduler.signatures.registry import build
from scheduler.web.app import create_app
from scheduler.web.backend import Backend
from scheduler.web.events import Hub
from scheduler.web.reception import Receptions
from scheduler.web.server import WebServer
from tests.engine.rig import Rig

JOBS = """
version: 1
defaults: {timezone: America/New_York, grace: 10m}
queues: {one: {concurrency: 1}}
jobs:
  report:
    description: 每周报告 of the shop
    schedule: "15 8 * * 1"
    command: [report]
    team: shop
    tags: [weekly, money]
  minutely:
    schedule: "* * * * *"
    command: [minutely]
  ticket:
    command: [ticket]
    retries: [1m]
  quiet:
    schedule: "0 0 * * *"
    enabled: false
    command: [quiet]
"""


class Faces:
    """`live` maps a run to what it has printed so far; `sick` a check to its reason."""

    def __init__(self, store: Any, text: str = JOBS) -> None:
        self.rig = Rig(store, text)
        self.live: dict[str, bytes] = {}
        self.sick: dict[str, str] = {}
        self.said: list[Remark] = []
        self.environ: dict[str, str] = {}
        self.holdup: str | None = None
        self.hub = Hub(self.rig.bus)
        self.gate = TokenGate(self.rig.store, self.rig.clock, self.rig.bus)
        self.backend = Backend(
            readable=store,
            commands=self.rig.desk,
            bus=self.rig.bus,
            now=self.rig.clock.now,
            configuration=lambda: self.rig.in_force.current.configuration,
            version="9.9",
            node=lambda: self.rig.node,
            gate=self.gate,
            inbox=self.rig.inbox,
            signs=self.rig.signs,
            receptions=Receptions(lambda: self.rig.in_force.current.configuration.sources, build, self.environ),
            checks={"loops": lambda: self.sick.get("loops"), "database": lambda: self.sick.get("database")},
            metrics=lambda: b"# metrics\n",
            live_output=self._live_output,
            remarks=lambda: self.said,
            holdup=lambda: self.holdup,
            address=lambda: "http://127.0.0.1:0",
        )

    def apps(self) -> tuple[Any, Any]:
        """What TCP serves, and what the Unix socket serves."""
        return create_app(self.backend, self.hub, trusted=False), create_app(self.backend, self.hub, trusted=True)

    def with_backend(self, **changes: Any) -> Any:
        """The acting app over a backend with these parts exchanged."""
        return create_app(replace(self.backend, **changes), self.hub, trusted=True)

    @contextmanager
    def served(self) -> Iterator[Served]:
        """The server, on a free port and on a socket in a folder with a short name."""
        with tempfile.TemporaryDirectory(prefix="faces") as folder:
            reading, acting = self.apps()
            server = WebServer(reading, acting, ("127.0.0.1", 0), Path(folder) / "s.sock", grace=1.0)
            server.open()
            server.start()
            try:
                yield Served(self, server, Path(folder) / "s.sock")
            finally:
                self.hub.close()
                server.stop()

    def _live_output(self, run: str, attempt: int) -> Output | None:
        printed = self.live.get(run)
        return None if printed is None else Output(run, attempt, printed, b"", 0, False)


class Served:
    """schedctl against these faces."""

    def __init__(self, faces: Faces, server: WebServer, socket: Path) -> None:
        self.faces = faces
        self.rig = faces.rig
        self.server = server
        self.socket = socket

    def schedctl(self, *arguments: str) -> int:
        surface = Surface({"SCHEDULER_SOCKET": str(self.socket), "TERM": "dumb"})
        surface.now = self.rig.clock.now
        return run(arguments, surface)
