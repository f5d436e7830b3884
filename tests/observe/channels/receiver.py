"""What people would look at: a web server and a mail server that keep what they get, on real sockets."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.time)

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """A web server. The next answers are taken from `answers` (status, headers, body), then it is 200 `fine`. While
    `hanging` is not set it does not answer at all."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/", scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.port}{path}"


@contextmanager
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    found.hanging.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            found.got.append(Got(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if not found.hanging.wait(30):
                return
            status, headers, said = found.answers.pop(0) if found.answers else (200, {}, b"fine")
            self.send_response(status)
            for name, value in {"Content-Length": str(len(said)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        do_PUT = do_POST  # noqa: N815  # as the server calls it

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        found.hanging.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mailbox:
    port: int = 0
    mails: list[str] = field(default_factory=list)
    refuses: bool = False


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """As much of SMTP as a client needs to hand over a mail."""
    found = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            for line in iter(self.rfile.readline, b""):
                verb = line[:4].upper()
                if verb == b"DATA":
                    self._say("354 go on")
                    found.mails.append(self._mail())
                    self._say("250 taken")
                elif verb == b"QUIT":
                    self._say("221 bye")
                    return
                elif verb == b"RCPT" and found.refuses:
                    self._say("550 no such mailbox")
                else:
                    self._say("250 ok")

        def _mail(self) -> str:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line)
            return b"".join(lines).decode("utf-8", "replace")

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
