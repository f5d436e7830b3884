"""One installation under test: its files, its daemon processes, its ledger read with plain SQL."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from tests.crash.checker import AttemptRow, RunRow, SkipRow
from tests.crash.load import MARK
from tests.crash.stamps import Stamp, boot, read_stamps

READY = 30.0


class World:
    """`url` empty: SQLite in the state directory. `program`: what follows `python -m`."""

    def __init__(self, folder: Path, mark: str, url: str = "", **settings: str) -> None:
        self.folder = folder
        self.mark = mark
        self.url = url
        self.stamps = folder / "stamps"
        self.config = folder / "jobs.yaml"
        self.state = folder / "state"
        self.log = folder / "log"
        self.settings = settings
        self.program: tuple[str, ...] = ("scheduler.daemon",)
        self.daemon: subprocess.Popen[bytes] | None = None

    # ------------------------------------------------------------ the daemon

    def start(self) -> None:
        """Starts a daemon and waits until it is ready."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Starts a daemon and does not wait."""
        with self.log.open("ab") as log:
            self.daemon = subprocess.Popen(
                [sys.executable, "-m", *self.program],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def environment(self) -> dict[str, str]:
        # Compiled once, not at every one of many starts.
        unwanted = ("SCHEDULER_", "PYTHONDONTWRITEBYTECODE")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        environment |= {
            "SCHEDULER_CONFIG": str(self.config),
            "SCHEDULER_STATE_DIR": str(self.state),
            "SCHEDULER_LISTEN": "127.0.0.1:0",
            "SCHEDULER_SLOTS": "2000",
            "SCHEDULER_LOG_FORMAT": "json",
            **self.settings,
        }
        if self.url:
            environment["SCHEDULER_DATABASE_URL"] = self.url
        return environment

    def wait_ready(self, timeout: float = READY) -> None:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            assert self.daemon is not None
            if self.daemon.poll() is not None:
                raise AssertionError(f"the daemon ended with {self.daemon.returncode}:\n{self.tail()}")
            try:
                if self.get("/readyz")[0] == 200:
                    return
            except OSError:
                pass
            threading.Event().wait(0.02)
        raise AssertionError(f"the daemon is not ready after {timeout} s:\n{self.tail()}")

    def kill(self) -> None:
        """kill -9, and reap."""
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait()

    def stop(self, timeout: float = 60.0) -> int:
        """SIGTERM, and wait for the drain."""
        assert self.daemon is not None
        self.daemon.send_signal(signal.SIGTERM)
        return self.daemon.wait(timeout)

    def supervisor(self) -> int | None:
        """The pid of the present daemon's supervisor."""
        assert self.daemon is not None
        for pid in children(self.daemon.pid):
            if b"supervisor" in _read(f"/proc/{pid}/cmdline"):
                return pid
        return None

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def get(self, path: str) -> tuple[int, bytes]:
        return self.ask("GET", path)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> tuple[int, bytes]:
        """Over the Unix socket. A body that is bytes is sent as it is, another one as JSON."""
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(timeout)
        try:
            connection.sock.connect(str(self.state / "schedctl.sock"))
            text = body if body is None or isinstance(body, bytes) else json.dumps(body)
            kind = {"content-type": "application/json"} if text else {}
            connection.request(method, path, text, kind | dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    # ------------------------------------------------------------ what is known

    boot = staticmethod(boot)

    def read_stamps(self) -> list[Stamp]:
        return read_stamps(self.stamps)

    def read_ledger(self) -> tuple[list[RunRow], list[SkipRow]]:
        """With plain SQL, so that no code of the product stands between. Without the canary: no schedule of ours."""
        runs = self._rows(
            "SELECT id, job, scheduled_for, status, reason, attempt, cause, key FROM runs WHERE job <> '_canary'"
        )
        skips = self._rows("SELECT job, reason, first, last, count FROM skips WHERE job <> '_canary'")
        return (
            [RunRow(r[0], r[1], _second(r[2]), r[3], r[4], r[5], r[3] in ("PENDING", "RUNNING"), *r[6:]) for r in runs],
            [SkipRow(s[0], s[1], _second(s[2]) or 0, _second(s[3]) or 0, s[4]) for s in skips],
        )

    def read_attempts(self) -> list[AttemptRow]:
        query = (
            "SELECT attempts.run, attempts.number, attempts.node, attempts.fence "
            "FROM attempts JOIN runs ON runs.id = attempts.run WHERE runs.job <> '_canary'"
        )
        return [AttemptRow(*row) for row in self._rows(query)]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        if self.url:
            with psycopg.connect(self.url) as postgres:
                return postgres.execute(query).fetchall()
        connection = sqlite3.connect(f"file:{self.state / 'scheduler.db'}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def survivors(self) -> list[str]:
        """Processes that a job started and that still live."""
        return [str(one) for one in marked(self.mark)]


@dataclass(frozen=True)
class Process:
    """`began`: CLOCK_BOOTTIME in seconds at which it began; `place`: where its daemon keeps what its runs write."""

    pid: int
    command: str
    state: str
    began: float
    run: str
    place: str

    def __str__(self) -> str:
        return f"{self.pid} {self.command} ({self.state}, of run {self.run} in {self.place})"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def marked(mark: str) -> list[Process]:
    """What jobs with this mark started and what still lives."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and wanted in (words := _read(f"/proc/{entry}/environ").split(b"\0")):
            told = dict(word.decode(errors="replace").split("=", 1) for word in words if b"=" in word)
            command = _read(f"/proc/{entry}/cmdline").replace(bytes(1), b" ").decode(errors="replace")
            stat = _read(f"/proc/{entry}/stat").rpartition(b")")[2].split()
            if stat and stat[0] not in (b"Z", b"X"):
                began = int(stat[19]) / os.sysconf("SC_CLK_TCK")
                place = os.path.dirname(told.get("SCHED_REPORT_FILE", ""))
                found.append(Process(int(entry), command, stat[0].decode(), began, told.get("SCHED_RUN_ID", ""), place))
    return found


def _second(text: object) -> int | None:
    if text is None:
        return None
    instant = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    return round(instant.timestamp())


def children(pid: int) -> list[int]:
    """Pids of its children; none of one that is gone."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(word) for task in tasks for word in _read(f"/proc/{pid}/task/{task}/children").split()]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
