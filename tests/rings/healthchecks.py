"""A stand-in for healthchecks: its pinging API over a real socket, with its answers and its state machine.

After its documentation (docs/http_api, measuring_script_run_time) and the behaviour of its self-hosted release: UUID
and slug addresses, actions, exit codes, `rid`, `create=1`, the body cut to its first bytes, `Ping-Body-Limit`; a check
is new, up or down, and started while a start has no end. It can also be away, silent or busy.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ACTIONS = ("start", "fail", "log")


@dataclass(frozen=True)
class Heard:
    """One ping as the service keeps it."""

    check: str
    kind: str
    rid: str | None
    body: bytes
    exitstatus: int | None
    method: str
    agent: str


@dataclass
class Check:
    """A check, by its UUID; `slug` in the project of `ping_key`."""

    code: str = field(default_factory=lambda: str(uuid.uuid4()))
    slug: str = ""
    status: str = "new"
    started: bool = False
    start_rid: str | None = None
    timed: int = 0
    """Ends that came with the rid of the start before them: those of which it tells a duration."""
    flips: list[str] = field(default_factory=list)

    def take(self, action: str, rid: str | None) -> None:
        if action == "start":
            self.started, self.start_rid = True, rid
        elif action != "log":
            if self.started and self.start_rid == rid:
                self.timed += 1
                self.started = False
            elif self.started and (action == "fail" or rid is None):
                self.started = False
            status = "down" if action == "fail" else "up"
            if status != self.status:
                self.flips.append(f"{self.status}-{status}")
                self.status = status


class Healthchecks:
    """`limit`: bytes of a body that are kept. `trouble`: what happens to every request instead of being heard: `reset`
    (the connection is closed without an answer), `silent` (until `recover`), or the status of an answer."""

    ping_key = "fBQJWPzmrbpYPVDeQTr8bQ"

    def __init__(self, limit: int = 10_000) -> None:
        self.limit = limit
        self.trouble: str | int | None = None
        self.refused = 0
        self.heard: list[Heard] = []
        self._checks: list[Check] = []
        self._changed = threading.Condition()
        self._recovered = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.recover()
        self._server.shutdown()
        self._server.server_close()

    def check(self, slug: str = "") -> Check:
        """A new one; its URL is `ping_url`."""
        made = Check(slug=slug)
        self._checks.append(made)
        return made

    def ping_url(self, check: Check) -> str:
        return f"{self.url}/{check.code}"

    def fall(self, trouble: str | int) -> None:
        self._recovered.clear()
        self.trouble = trouble

    def recover(self) -> None:
        self.trouble = None
        self._recovered.set()

    def wait(self, count: int, check: Check | None = None, timeout: float = 20.0) -> list[Heard]:
        """What was heard (of that check) as soon as it is so much."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.of(check)) >= count, timeout), self.of(check)
            return self.of(check)

    def wait_refused(self, count: int, timeout: float = 20.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.refused >= count, timeout), self.refused

    def of(self, check: Check | None) -> list[Heard]:
        return [one for one in self.heard if check is None or one.check == check.code]

    # ------------------------------------------------------------ the service

    def _answer(self, method: str, target: str, body: bytes, agent: str) -> tuple[int, str]:
        parts = urlsplit(target)
        words = parts.path.strip("/").split("/")
        query = parse_qs(parts.query)
        found, rest, created = self._find(words, query)
        if isinstance(found, int):
            return found, {404: "not found", 409: "ambiguous slug"}[found]
        action, exitstatus = "success", None
        if rest:
            if len(rest) > 1 or not (rest[0] in ACTIONS or rest[0].isdigit()):
                return 404, "not found"
            if rest[0].isdigit():
                exitstatus = int(rest[0])
                if exitstatus > 255:
                    return 400, "invalid url format"
                action = "fail" if exitstatus else "success"
            else:
                action = rest[0]
        rid = query.get("rid", [None])[0]
        if rid is not None:
            try:
                rid = str(uuid.UUID(rid))
            except ValueError:
                return 400, "invalid uuid format"
        with self._changed:
            found.take(action, rid)
            self.heard.append(Heard(found.code, action, rid, body[: self.limit], exitstatus, method, agent))
            self._changed.notify_all()
        return (201, "Created") if created else (200, "OK")

    def _find(self, words: list[str], query: dict[str, list[str]]) -> tuple[Check | int, list[str], bool]:
        try:
            code = str(uuid.UUID(words[0]))
        except ValueError:
            if words[0] != self.ping_key or len(words) < 2:
                return 404, [], False
            named = [one for one in self._checks if one.slug == words[1]]
            if len(named) > 1:
                return 409, [], False
            if named:
                return named[0], words[2:], False
            if query.get("create") != ["1"]:
                return 404, [], False
            return self.check(words[1]), words[2:], True
        return next((one for one in self._checks if one.code == code), 404), words[1:], False

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                """Says nothing."""

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                trouble = service.trouble
                if trouble is not None:
                    with service._changed:
                        service.refused += 1
                        service._changed.notify_all()
                if trouble in ("reset", "silent"):
                    if trouble == "silent":
                        service._recovered.wait(60)
                    self.close_connection = True
                    return
                status, text = (
                    (trouble, "busy")
                    if isinstance(trouble, int)
                    else service._answer(self.command, self.path, body, self.headers.get("User-Agent", ""))
                )
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Ping-Body-Limit", str(service.limit))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_POST = do_HEAD = _serve  # noqa: N815 -- the names that the base class calls

        return Handler


@contextmanager
def healthchecks(limit: int = 10_000) -> Iterator[Healthchecks]:
    service = Healthchecks(limit)
    try:
        yield service
    finally:
        service.close()
