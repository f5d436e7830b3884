"""Requests to an app in this process, from tests that are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx


class Client:
    """`get`, `post`, `request` as httpx has them. Any thread may ask; what the app raises comes out."""

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop, base_url: str, host: str) -> None:
        transport = httpx.ASGITransport(app, client=(host, 0))
        self._client = httpx.AsyncClient(transport=transport, base_url=base_url, timeout=60)
        self._loop = loop
        self.headers = self._client.headers

    def request(self, method: str, url: str, **how: Any) -> httpx.Response:
        """What an answer sets as a cookie is not sent by itself with the next request."""
        self._client.cookies.clear()
        return asyncio.run_coroutine_threadsafe(self._client.request(method, url, **how), self._loop).result(60)

    def get(self, url: str, **how: Any) -> httpx.Response:
        return self.request("GET", url, **how)

    def post(self, url: str, **how: Any) -> httpx.Response:
        return self.request("POST", url, **how)


@contextmanager
def client_of(app: Any, base_url: str = "http://localhost", host: str = "ana") -> Iterator[Client]:
    """`host`: the name of a user on the Unix socket, an address on TCP."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield Client(app, loop, base_url, host)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
