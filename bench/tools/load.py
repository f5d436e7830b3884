"""Load over many connections: each sends the next request as soon as the one before is answered."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path


@dataclass(slots=True)
class Load:
    """What came back. `seconds` is from the first request to the last answer; `waits` are seconds per answer."""

    statuses: Counter[int] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)
    seconds: float = 0.0
    refusal: str = ""


def request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def hammer(socket: Path, text: bytes, requests: int, connections: int, limit: float) -> Load:
    """Sends `text` `requests` times over that many connections, for at most `limit` seconds."""
    return pour(socket, repeat(text, requests), connections, limit)


def pour(where: Path | int, texts: Iterable[bytes], connections: int, limit: float) -> Load:
    """Sends each of these requests once, to a Unix socket or a port of this machine, for at most `limit` seconds."""
    return asyncio.run(_pour(where, iter(texts), connections, limit))


async def _pour(where: Path | int, texts: Iterator[bytes], connections: int, limit: float) -> Load:
    loop = asyncio.get_running_loop()
    load, left = Load(), _Left(texts, time.monotonic() + limit)
    clients = []
    for _ in range(connections):
        client = _Client(left, load, loop.create_future())
        if isinstance(where, Path):
            await loop.create_unix_connection(lambda client=client: client, str(where))  # type: ignore[misc]
        else:
            await loop.create_connection(lambda client=client: client, "127.0.0.1", where)  # type: ignore[misc]
        clients.append(client)
    begun = time.perf_counter()
    for client in clients:
        client.send()
    await asyncio.gather(*(client.done for client in clients))
    load.seconds = time.perf_counter() - begun
    return load


@dataclass(slots=True)
class _Left:
    texts: Iterator[bytes]
    end: float

    def next(self) -> bytes | None:
        return None if time.monotonic() > self.end else next(self.texts, None)


class _Client(asyncio.Protocol):
    def __init__(self, left: _Left, load: Load, done: asyncio.Future[None]) -> None:
        self._left = left
        self._load = load
        self._got = bytearray()
        self._sent = 0.0
        self.done = done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self) -> None:
        text = self._left.next()
        if text is None:
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(text)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head = self._got.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._got.lower().find(b"content-length:", 0, head)
        length = int(self._got[at + 15 : self._got.index(b"\r\n", at)])
        if len(self._got) < head + 4 + length:
            return
        status = int(self._got[9:12])
        if status >= 400 and not self._load.refusal:
            self._load.refusal = bytes(self._got[head + 4 :]).decode(errors="replace")[:300]
        self._got.clear()
        self._load.statuses[status] += 1
        self._load.waits.append(time.perf_counter() - self._sent)
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)
