"""A receiver of webhooks on a real socket, with an inbox that only remembers."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scheduler.core.errors import SchedulerError
from scheduler.core.event import NewEvent, Reject, Stored
from scheduler.core.preset import EventFields
from scheduler.core.secret import Secret
from scheduler.core.source import Source
from scheduler.signatures.registry import build
from scheduler.web.reception import Receptions
from scheduler.web.server import WebServer
from scheduler.web.webhooks import Webhooks

SECRET = "a-secret-nobody-knows"
ENVIRON = {"PAYMENTS_SECRET": SECRET}
FIELDS = EventFields("event_id", "event", "occurred_at", "order_no")


def source(name: str = "payments", **changes: Any) -> Source:
    given: dict[str, Any] = {
        "scheme": "hmac",
        "event": FIELDS,
        "keep": timedelta(days=45),
        "tolerance": timedelta(minutes=5),
        "options": {"header": "X-Signature", "prefix": "sha256="},
        "secrets": (Secret(env="PAYMENTS_SECRET"),),
    }
    return Source(name, "", name, **{**given, **changes})


class Inbox:
    """Stores what is new by (source, id), like the real one, and answers `error` while there is one."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], NewEvent] = {}
        self.rejects: list[Reject] = []
        self.error: SchedulerError | Exception | None = None

    def submit(self, events: Sequence[NewEvent], ticket: Any, deliver: Any) -> None:
        if isinstance(self.error, SchedulerError):
            deliver([(ticket, [self.error] * len(events))])
            return
        if self.error is not None:
            raise self.error
        answers = []
        for one in events:
            new = self.events.setdefault((one.source, one.id), one) is one
            answers.append(Stored(len(self.events), one.source, one.id, new))
        deliver([(ticket, answers)])

    def refuse(self, reject: Reject) -> None:
        self.rejects.append(reject)


class Hooks:
    """`sources` may be changed while it serves. `said` is what was counted, `served` what was answered."""

    def __init__(self, *sources: Source) -> None:
        self.sources = {one.name: one for one in sources or (source(),)}
        self.inbox = Inbox()
        self.environ = dict(ENVIRON)
        self.said: list[tuple[str, str]] = []
        self.served: list[tuple[str, str, int]] = []
        self.now = datetime(2026, 10, 1, 12, 0, tzinfo=UTC)
        self.renew()

    def renew(self) -> None:
        """As a daemon that starts with this environment and this inbox."""
        self.receptions = Receptions(lambda: self.sources, build, self.environ)
        self.app: Any = Webhooks(
            self.receptions,
            self.inbox,  # type: ignore[arg-type]
            lambda route, method, status, seconds: self.served.append((route, method, status)),
            lambda source, what: self.said.append((source, what)),
            lambda: self.now,
        )

    @contextmanager
    def open(self) -> Iterator[tuple[str, int]]:
        """Its address."""
        with tempfile.TemporaryDirectory(prefix="hooks") as folder:
            server = WebServer(self.app, self.app, ("127.0.0.1", 0), Path(folder) / "s.sock", grace=1.0)
            server.open()
            server.start()
            try:
                assert server.address is not None
                yield server.address
            finally:
                server.stop()


def body_of(event_id: str = "e1", **more: Any) -> bytes:
    return json.dumps({"event_id": event_id, "event": "order.paid", "order_no": "o1", **more}).encode()


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def request(
    body: bytes,
    headers: dict[str, str] | None = None,
    *,
    path: str = "/webhooks/payments",
    method: str = "POST",
    signed: bool = True,
    chunked: int = 0,
) -> bytes:
    """A whole request, in chunks of `chunked` bytes if that is not 0."""
    fields = {"Host": "hooks.example.com", "Content-Type": "application/json", "Connection": "close"}
    if signed:
        fields["X-Signature"] = signature(body)
    if chunked:
        parts = [body[begin : begin + chunked] for begin in range(0, len(body), chunked)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        fields["Transfer-Encoding"] = "chunked"
    else:
        fields["Content-Length"] = str(len(body))
    fields |= headers or {}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


class Answered:
    def __init__(self, raw: bytes) -> None:
        self.head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = self.head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/1.1 ") else 0
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(address: tuple[str, int], *parts: bytes) -> Answered:
    """Sends the parts and reads until the other end hangs up."""
    with socket.create_connection(address, timeout=10) as connected:
        try:
            for part in parts:
                connected.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass  # It was answered before all was sent.
        raw = b""
        try:
            while part := connected.recv(65536):
                raw += part
        except ConnectionResetError:
            pass
        return Answered(raw)
