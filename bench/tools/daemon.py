"""The product under measurement: a daemon with files of its own, and questions to it over its Unix socket."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.tools.processes import Group, tree
from bench.tools.waiting import TooLate

READY = 120.0
"""Seconds that a daemon may take until it is ready."""


class Daemon:
    """`url` empty: SQLite in the state directory. `settings` are SCHEDULER_*, without that prefix."""

    def __init__(self, folder: Path, text: str, url: str = "", **settings: str) -> None:
        self.folder = folder
        self.url = url
        self.config = folder / "jobs.yaml"
        self.config.write_text(text)
        self.state = folder / "state"
        self.socket = self.state / "schedctl.sock"
        self._settings = settings
        self._group = Group(folder)

    def environment(self) -> dict[str, str]:
        found = {name: value for name, value in os.environ.items() if not name.startswith("SCHED")}
        # Compiled once, not at every start.
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        found |= {
            "SCHEDULER_CONFIG": str(self.config),
            "SCHEDULER_STATE_DIR": str(self.state),
            "SCHEDULER_LISTEN": "127.0.0.1:0",
            "SCHEDULER_SOCKET": str(self.socket),
            "SCHEDULER_LOG_FORMAT": "json",
        }
        found |= {f"SCHEDULER_{name}": value for name, value in self._settings.items()}
        if self.url:
            found["SCHEDULER_DATABASE_URL"] = self.url
        return found

    def start(self, wait: bool = True) -> None:
        """Starts it; with `wait` returns when it is ready. Raises TooLate with its last words."""
        self._group.start([sys.executable, "-m", "scheduler.daemon"], self.environment(), self.folder)
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        end = time.monotonic() + READY
        while time.monotonic() < end and self._group.alive():
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        raise TooLate(f"the daemon is not ready: {self.tail()}")

    @property
    def pid(self) -> int:
        return self._group.started[-1].pid

    def pids(self) -> list[int]:
        """The daemon and everything below it."""
        return tree([self.pid])

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """One request over a connection of its own; status and parsed answer."""
        connection = self.connect()
        try:
            return send(connection, method, path, body)
        finally:
            connection.close()

    def must(self, method: str, path: str, body: object = None) -> Any:
        """The answer. Raises RuntimeError for a refusal."""
        status, answer = self.ask(method, path, body)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.settimeout(timeout)
        try:
            connected.connect(str(self.socket))
        except OSError:
            connected.close()
            raise
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.sock = connected
        return connection

    def schedctl(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """schedctl as a user types it, in a pipe."""
        return subprocess.run([str(SCHEDCTL), *words], env=self.environment(), capture_output=True, check=False)

    def stop(self) -> None:
        self._group.stop(patience=20)

    def kill(self) -> None:
        self._group.stop(signal.SIGKILL)

    def tail(self) -> str:
        return self._group.tail()


SCHEDCTL = Path(sys.executable).with_name("schedctl")


def send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """One request over a kept connection."""
    text = None if body is None else json.dumps(body)
    sent = {"content-type": "application/json"} if text else {}
    connection.request(method, path, text, {**sent, **(headers or {})})
    response = connection.getresponse()
    answer = response.read()
    try:
        return response.status, json.loads(answer)
    except ValueError:
        return response.status, answer
