"""`python -m bench.tools.sink FOLDER`: takes every request, stamps it, answers 200; its port is in FOLDER/port."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import httptools


class Taken(asyncio.Protocol):
    """One connection, which may send as many requests as it likes."""

    def __init__(self, stamps: int) -> None:
        self._stamps = stamps
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        os.write(self._stamps, b"%.6f\n" % time.time())
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")


async def serve(folder: Path) -> None:
    stamps = os.open(folder / "started.sink", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    server = await asyncio.get_running_loop().create_server(lambda: Taken(stamps), "127.0.0.1", 0, backlog=1000)
    port = folder / "port.new"
    port.write_text(str(server.sockets[0].getsockname()[1]))
    port.rename(folder / "port")
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
