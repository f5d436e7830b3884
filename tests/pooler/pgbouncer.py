"""PgBouncer as Debian packages it, on a free port of the loopback, before the PostgreSQL of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from tests.until import until

REQUIRED = "TESTS_REQUIRE_PGBOUNCER"


def program() -> str:
    """Its path. Where it is not installed the test is skipped, or fails if REQUIRED says so."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if found is not None:
        return found
    why = "pgbouncer is not installed: apt-get install pgbouncer"
    if os.environ.get(REQUIRED):
        pytest.fail(f"{why} ({REQUIRED} is set)")
    pytest.skip(why)


class PgBouncer:
    """One that can be stopped and started again under the same address. `server` is the URL of a database that is
    reached by a socket; who owns that folder is who PgBouncer runs as, for it refuses to be root."""

    def __init__(self, folder: Path, server: str, mode: str, size: int) -> None:
        self._program = program()
        self._log = folder / "log"
        parsed = make_url(server)
        sockets = Path(str(parsed.query["host"]))
        self._user = pwd.getpwuid(sockets.stat().st_uid).pw_name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/{parsed.database}"
        self._file = folder / "pgbouncer.ini"
        self._file.write_text(
            f"[databases]\n{parsed.database} = host={sockets} dbname={parsed.database} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = {size}\nmax_client_conn = 200\n"
            "server_login_retry = 1\nadmin_users = postgres\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        as_owner = ["-u", self._user] if os.getuid() == 0 else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *as_owner, str(self._file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        with suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
        return False

    def stop(self) -> None:
        """At once: every connection through it breaks."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(10)

    def servers(self) -> int:
        """Connections that it holds to the server."""
        address = make_url(self.url).set(database="pgbouncer").render_as_string()
        with psycopg.connect(address, autocommit=True) as connection:
            return len(connection.execute("SHOW SERVERS", prepare=False).fetchall())


@contextmanager
def pgbouncer(server: str, mode: str = "transaction", size: int = 6) -> Iterator[PgBouncer]:
    """With so many connections to the server. In a folder that others may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="pgbouncer") as name:
        os.chmod(name, 0o755)
        one = PgBouncer(Path(name), server, mode, size)
        one.start()
        try:
            yield one
        finally:
            one.stop()
