"""A process that has many requests on their way at once, each on a connection of its own.

Asynchronous, alone among the parts behind the web: a request is ended by closing its connection, and only a task can
be ended in every phase of a request, looking up the name and connecting included.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import httpx

from scheduler.config.filling import BadTemplate, content_type, filled_address, render
from scheduler.executors.attempts.values import RESULT_LIMIT, parse
from scheduler.executors.workers.wire import READY, Message, Unpacker, no_room, pack
from scheduler.trust import trusted

CONNECT_WITHIN = 30.0
"""Seconds to look up, connect and shake hands, if the attempt's own time-out is not shorter."""
MOST_REDIRECTS = 5
_NAME_LOOKUPS = 64
_SHOWN = 200
_KEPT_METHOD = (307, 308)
_REDIRECTS = (301, 302, 303, *_KEPT_METHOD)
_HIDDEN_HEADERS = frozenset({"set-cookie", "authorization", "proxy-authorization", "www-authenticate"})


class BadRequest(Exception):
    """The request cannot be sent like this or was answered with a redirect that is not followed; no use to repeat."""


def serve(channel: socket.socket) -> None:
    """Until the daemon closes the channel; then every connection is closed with the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_serve(channel))


async def _serve(channel: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_NAME_LOOKUPS))
    reader, writer = await asyncio.open_connection(sock=channel)
    client = _client()
    tasks: dict[str, asyncio.Task[Message]] = {}
    unpacker = Unpacker()

    def finished(run: str, task: asyncio.Task[Message]) -> None:
        del tasks[run]
        if task.cancelled():
            answer: Message = {"ended": True}
        elif (error := task.exception()) is not None:
            answer = {"error": f"{type(error).__name__}: {error}", "final": False}
        else:
            answer = task.result()
        writer.write(pack({"run": run, "at": time.clock_gettime(time.CLOCK_BOOTTIME), **answer}))

    writer.write(pack(READY))
    while piece := await reader.read(1 << 16):
        for order in unpacker.feed(piece):
            run = order["run"]
            if order["do"] == "run":
                tasks[run] = asyncio.create_task(_request(client, order))
                tasks[run].add_done_callback(partial(finished, run))
            elif run in tasks:
                tasks[run].cancel()
    # Threads that look up a name cannot be ended otherwise.
    os._exit(0)


def _client() -> httpx.AsyncClient:
    """No cookies, no kept connections: nothing of one run reaches another."""
    return httpx.AsyncClient(
        verify=trusted(),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        headers={"user-agent": "schedulerd", "connection": "close"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
    )


async def _request(client: httpx.AsyncClient, order: Message) -> Message:
    try:
        log = _Log(Path(order["output"]), order["log_limit"])
    except OSError as error:
        return no_room(error)
    try:
        request = await _prepared(client, order)
        return await _exchange(client, request, order, log)
    except (BadTemplate, BadRequest, httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        log.line(str(error))
        return {"error": str(error), "final": True, "template": isinstance(error, BadTemplate)}
    except httpx.HTTPError as error:
        words = _words(error)
        log.line(words)
        return {"error": words, "final": False}
    finally:
        log.close()


async def _prepared(client: httpx.AsyncClient, order: Message) -> httpx.Request:
    headers = httpx.Headers([(name, value.encode("latin-1")) for name, value in order["headers"]])
    body: bytes | None = None
    if order["template"] is not None:
        body = await asyncio.to_thread(render, order["template"], order["names"])
    elif order["payload"] is not None:
        body = order["payload"].encode("utf-8")
    if body is not None:
        headers.setdefault("content-type", content_type(body))
    url = order["url"]
    if order["fill"] is not None:
        url = await asyncio.to_thread(filled_address, url, order["fill"])
    timeout = order["timeout"]
    return client.build_request(
        order["method"],
        url,
        headers=headers,
        content=body,
        timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_WITHIN), pool=None),
    )


async def _exchange(client: httpx.AsyncClient, request: httpx.Request, order: Message, log: _Log) -> Message:
    for _hop in range(MOST_REDIRECTS + 1):
        log.line(f"{request.method} {shown(request.url)}")
        response = await client.send(request, stream=True)
        try:
            log.line(f"{response.http_version} {response.status_code} {response.reason_phrase}".rstrip())
            if response.status_code in _REDIRECTS and response.status_code not in order["expect_status"]:
                request = _redirected(client, request, response)
                continue
            return await _answer(response, log)
        finally:
            await response.aclose()
    raise BadRequest(f"{request.method} {shown(request.url)} was redirected more than {MOST_REDIRECTS} times")


def _redirected(client: httpx.AsyncClient, request: httpx.Request, response: httpx.Response) -> httpx.Request:
    """The same request at the place that the same server names; everything else is refused."""
    status = response.status_code
    what = f"{request.method} {shown(request.url)} answered {status}"
    try:
        target = request.url.join(response.headers["location"])
    except (KeyError, httpx.InvalidURL):
        raise BadRequest(f"{what} without a usable Location") from None
    hint = f"write url: {shown(target)}, or expect_status: [{status}] if that means success"
    if status not in _KEPT_METHOD and request.method not in ("GET", "HEAD"):
        raise BadRequest(f"{what}, which would turn {request.method} into GET; {hint}")
    if _origin(target) != _origin(request.url):
        raise BadRequest(f"{what} and points to another server, which must not get this request; {hint}")
    headers = request.headers.copy()
    return client.build_request(
        request.method, target, headers=headers, content=request.content, extensions=request.extensions
    )


async def _answer(response: httpx.Response, log: _Log) -> Message:
    for name, value in response.headers.multi_items():
        log.line(f"{name}: {'***' if name.lower() in _HIDDEN_HEADERS else value}")
    log.line("")
    kept = bytearray()
    most = max(RESULT_LIMIT, log.left)
    whole = True
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        log.write(piece)
        kept += piece[: max(0, RESULT_LIMIT + 1 - len(kept))]
        if size > most:
            whole = False
            break
    log.finish_body(whole)
    is_json = "json" in response.headers.get("content-type", "").partition(";")[0].lower()
    fits = whole and len(kept) <= RESULT_LIMIT
    return {
        "status": response.status_code,
        "reason": response.reason_phrase,
        "retry_after": response.headers.get("retry-after"),
        "date": response.headers.get("date"),
        "json": fits and is_json,
        "result": _json(bytes(kept)) if fits and is_json else None,
        "first": kept[:_SHOWN].decode("utf-8", "replace").strip().partition("\n")[0],
    }


class _Log:
    """The attempt's output: what was asked and answered, at most about `limit` bytes."""

    def __init__(self, path: Path, limit: int) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.left = limit
        self._ends_with_newline = True

    def line(self, text: str) -> None:
        self.write(f"{text}\n".encode("utf-8", "replace"))

    def write(self, data: bytes) -> None:
        data = data[: max(0, self.left)]
        if data:
            self.left -= len(data)
            self._ends_with_newline = data.endswith(b"\n")
            _quietly(lambda: os.write(self._descriptor, data))

    def finish_body(self, whole: bool) -> None:
        self.left = max(self.left, 1000)
        if not self._ends_with_newline:
            self.line("")
        if not whole:
            self.line("[schedulerd] the rest of the answer was not read")

    def close(self) -> None:
        os.close(self._descriptor)


def _quietly(write: Callable[[], Any]) -> None:
    """A full disk costs the log, not the request."""
    try:
        write()
    except OSError:
        return


def _json(data: bytes) -> Any:
    try:
        return parse(data)
    except ValueError:
        return None


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def shown(url: httpx.URL) -> str:
    """Without user, password and query, which may be secrets."""
    port = "" if url.port is None else f":{url.port}"
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{port}{url.path}"


def _words(error: httpx.HTTPError) -> str:
    try:
        where = f"{error.request.method} {shown(error.request.url)}"
    except RuntimeError:
        where = "the request"
    match error:
        case httpx.ConnectTimeout():
            return f"{where}: no connection within the time allowed; is the address right and reachable from here?"
        case httpx.ConnectError():
            return f"{where}: cannot connect: {error}"
        case httpx.TimeoutException():
            return f"{where}: no answer in time"
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError():
            return f"{where}: the connection broke: {error}"
    return f"{where}: {type(error).__name__}: {error}"
