"""`/ping/{key}/{job}`: what a job that runs elsewhere tells is on disk before it is answered.

An ASGI app of its own beside the API, for senders that can do no more than fetch a URL. The key in the path is a token
of role `ping`; it is in no log, no metric and no answer, and neither is anything else of a path whose key is wrong.
Whoever has no right key hears the same whatever they asked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import structlog
from anyio import to_thread
from starlette.types import Receive, Scope, Send

from scheduler.core.access import Gate, Role, Token
from scheduler.core.errors import InvalidInput, NotFound, Refused, SchedulerError, Unavailable
from scheduler.core.job import Job
from scheduler.core.sign import LONGEST_TEXT, Sign, Signs
from scheduler.web.answers import RETRY_AFTER
from scheduler.web.backend import Served
from scheduler.web.bucket import Bucket
from scheduler.web.guard import bearer_of
from scheduler.web.ping_words import HEADER, Address, address_of, said
from scheduler.web.seldom import Seldom
from scheduler.web.webhook_answers import Ready, ready

ROUTE = "/ping/{key}/{job}"
METHODS = frozenset({"GET", "HEAD", "POST"})
RATE, BURST = 1.0, 60
"""Pings a second that one job may send in the long run, and at once."""

_TEXT = "text/plain; charset=utf-8"
_LIMIT = b"ping-body-limit: %d\r\n" % LONGEST_TEXT
_STATUS = ((InvalidInput, 400), (NotFound, 404), (Refused, 409), (Unavailable, 503))


class Pings:
    """Used from one event loop. `trusted`: callers were let in by the socket's mode, and need no key. `jobs` are those
    in force here."""

    def __init__(
        self, signs: Signs, gate: Gate, jobs: Callable[[], Mapping[str, Job]], served: Served, *, trusted: bool
    ) -> None:
        self._signs = signs
        self._gate = gate
        self._jobs = jobs
        self._served = served
        self._trusted = trusted
        self._buckets: dict[str, Bucket] = {}
        self._log = structlog.get_logger("web")
        self._seldom = Seldom(self._log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        method = scope["method"] if scope["method"] in METHODS else "other"
        try:
            answer = await self._answer(scope, receive)
        except SchedulerError as error:
            answer = _problem(error)
        except Exception:
            # Without the request: its path holds a key.
            self._log.exception("request_failed", method=method, route=ROUTE)
            answer = _text(503, "try again later", _retry(RETRY_AFTER))
        if answer is None:
            return  # Nobody is there any more.
        self._served(ROUTE, method, answer.status, time.perf_counter() - begun)
        await answer.send(scope, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Ready | None:
        if scope["method"] not in METHODS:
            return _text(405, "a ping is GET, HEAD or POST", b"allow: GET, HEAD, POST\r\n")
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        address = address_of(path)
        author = None if address is None else await self._author(scope, address)
        if address is None or author is None:
            return _text(404, "not found")
        told = said(address.rest, scope["query_string"])
        wait = self._bucket(address.job).take()
        if wait:
            self._seldom.warn("ping_too_many", address.job if address.job in self._jobs() else "")
            return _text(429, "too many pings of this job; try again later", _retry(math.ceil(wait)))
        body = await _last_bytes(receive)
        if body is None:
            return None
        text, omitted = body
        sign = Sign(address.job, told.word, told.exit_code, told.rid, text, omitted, told.ago, told.took, author=author)
        noted = await to_thread.run_sync(self._signs.take, sign)
        run = b"" if noted.run is None else b"schedctl-run: %s\r\n" % noted.run.encode()
        return _text(200, "OK" if noted.run else "OK (there is no run that this could be kept with)", run)

    def _bucket(self, job: str) -> Bucket:
        """Names that no job has share one: nobody can make up more of them than there are jobs."""
        name = job if job in self._jobs() else ""
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(RATE, BURST)
        return bucket

    async def _author(self, scope: Scope, address: Address) -> str | None:
        """Who is written down as having told it; None: somebody without a right key. Raises Unavailable while nobody
        can say whose key it is."""
        if address.key != HEADER:
            token = await self._holder(address.key)
            return f"ping:{token.name}" if token is not None and token.role is Role.PING else None
        if self._trusted:
            client = scope.get("client")
            return str(client[0]) if client else "somebody"
        token = await self._holder(bearer_of(scope) or "")
        if token is None or token.session or token.role not in (Role.PING, Role.OPERATE):
            return None
        return f"{'ping' if token.role is Role.PING else 'token'}:{token.name}"

    async def _holder(self, secret: str) -> Token | None:
        token = self._gate.recall(secret)
        if self._gate.stale(missed=token is None):
            try:
                await to_thread.run_sync(self._gate.refresh)
            except Unavailable:
                if token is None:
                    raise
                return token
            token = self._gate.recall(secret)
        return token


async def _last_bytes(receive: Receive) -> tuple[bytes, int] | None:
    """The end of the body, and how many bytes came before that; None if its sender is gone."""
    kept, omitted, more = b"", 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        kept += message.get("body", b"")
        cut = max(0, len(kept) - LONGEST_TEXT)
        kept, omitted = kept[cut:], omitted + cut
        more = message.get("more_body", False)
    return kept, omitted


def _problem(error: SchedulerError) -> Ready:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
    if status == 503:
        return _text(503, "try again later", _retry(RETRY_AFTER))
    return _text(status, error.reason if error.hint is None else f"{error.reason}\nhint: {error.hint}")


def _retry(seconds: str | int) -> bytes:
    return f"retry-after: {seconds}\r\n".encode()


def _text(status: int, text: str, more: bytes = b"") -> Ready:
    return ready(status, text.encode("utf-8", "replace"), _TEXT, _LIMIT + more)
