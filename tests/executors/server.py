"""A local HTTP server with real sockets, whose answers a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answers:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken connections are what some tests are about."""


class Server:
    """`answers` by path (default 200 `{}`); `asked` lists requests; `handlers` do something of their own."""

    def __init__(self) -> None:
        self.answers: dict[str, Answers] = {}
        self.handlers: dict[str, Callable[[Any], None]] = {}
        self.asked: list[Asked] = []
        self.gone = threading.Event()
        self.release = threading.Event()
        self.waiting = 0
        self._lock = threading.Lock()
        self._server = _Listening(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def slow(self, handler: BaseHTTPRequestHandler) -> None:
        """Begins an answer, never ends it by itself, and notices when the client goes away."""
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        handler.wfile.write(b"begun\n")
        handler.wfile.flush()
        with self._lock:
            self.waiting += 1
        if handler.connection.recv(1) == b"":
            self.gone.set()

    def gather(self, handler: BaseHTTPRequestHandler) -> None:
        """Answers when `release` is set."""
        with self._lock:
            self.waiting += 1
        self.release.wait(30)
        reply(handler, Answers())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            body = b""

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.body = self.rfile.read(length)
                asked = Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                with server._lock:
                    server.asked.append(asked)
                path = self.path.partition("?")[0]
                if path in server.handlers:
                    self.close_connection = True
                    server.handlers[path](self)
                else:
                    reply(self, server.answers.get(path, Answers()))

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = answer  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Tests look at `asked`."""

        return Handler


def reply(handler: BaseHTTPRequestHandler, answers: Answers) -> None:
    handler.send_response(answers.status)
    for name, value in answers.headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(answers.body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(answers.body)


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()
