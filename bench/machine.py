"""What the machine itself can do: nobody gets below it."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import psycopg

from bench.session import Session
from bench.tools.percentiles import percentile

_TIMES = 300


def describe(session: Session) -> dict[str, str]:
    """Processor, cores, memory, kernel, Python, and what kind of file system everything is measured on."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 1e6:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "files": _file_system(session.disk),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def limits(session: Session) -> dict[str, float]:
    """Milliseconds, p50 of several hundred: one fsync, one commit of each database, one child, one file, one directory,
    one HTTP round trip."""
    folder = session.folder()
    found = {
        "one fsync ms": _fsync(folder / "file"),
        "one SQLite commit ms": _sqlite(folder / "database"),
        "one PostgreSQL commit ms": _postgresql(session),
        "fork, exec and wait ms": _times(lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)),
        "our child ms": _child(session, folder),
        "one file written and removed ms": _times(lambda: _file(folder / "passing")),
        "one directory made and removed ms": _times(lambda: _directory(folder / "passing")),
        "one HTTP round trip ms": _round_trip(folder / "socket"),
    }
    session.drop(folder)
    return found


def _times(once: Callable[[], object]) -> float:
    taken = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        once()
        taken.append(time.perf_counter() - begun)
    return percentile(taken, 0.5) * 1e3


def _fsync(path: Path) -> float:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)

    def once() -> None:
        os.write(file, bytes(4096))
        os.fsync(file)

    try:
        return _times(once)
    finally:
        os.close(file)


def _sqlite(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, words TEXT)")
    try:
        return _times(lambda: connection.execute("INSERT INTO rows (words) VALUES ('a row')"))
    finally:
        connection.close()


def _postgresql(session: Session) -> float:
    with session.service("postgresql") as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows (number serial PRIMARY KEY, words text)")
        return _times(lambda: connection.execute("INSERT INTO rows (words) VALUES ('a row')"))


def _file(path: Path) -> None:
    path.write_bytes(bytes(100))
    path.unlink()


def _directory(path: Path) -> None:
    path.mkdir()
    path.rmdir()


def _child(session: Session, folder: Path) -> float:
    words = [str(session.child), str(folder / "stamps")]
    return _times(lambda: os.waitpid(os.posix_spawn(words[0], words, {}), 0))


def _round_trip(path: Path) -> float:
    """Over a kept connection to the smallest server that can be written in Python, in a thread of its own."""
    ready: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_unix_server(_Answering, str(path))
        ready.append(asyncio.get_running_loop())
        async with server:
            await server.serve_forever()

    def run() -> None:
        try:
            asyncio.run(serve())
        except asyncio.CancelledError:
            return

    thread = Thread(target=run, name="answering")
    thread.start()
    while not ready:
        time.sleep(0.01)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(str(path))

    def once() -> None:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(4096)

    try:
        return _times(once)
    finally:
        client.close()
        loop = ready[0]
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
        thread.join()


class _Answering(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def _file_system(folder: Path) -> str:
    """`ext4 without journal`, for example."""
    held = [line.split() for line in _lines("/proc/mounts")]
    mounts = {Path(words[1]): words for words in held}
    device, _, kind, *_ = next(mounts[place] for place in (folder, *folder.resolve().parents) if place in mounts)
    if kind == "ext4" and not any(Path("/proc/fs/jbd2").glob(f"{Path(device).name}-*")):
        return "ext4 without journal"
    return kind


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
