"""`POST /webhooks/{source}`: an event is on disk, with the runs that it makes, before its sender hears so.

An ASGI app of its own beside the API: senders have no token but a signature, and thousands may come in a second.
Whatever bytes are sent, the answer is 2xx, a 4xx that tells a stranger nothing useful, or a 503 that asks to try again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import structlog
from anyio import to_thread
from starlette.types import Receive, Scope, Send

from scheduler.core.errors import InvalidInput, NotFound, SchedulerError
from scheduler.core.event import NewEvent, Stored
from scheduler.core.inbox import Inbox
from scheduler.core.preset import Answer
from scheduler.core.signature import Headers, Incoming, Refusal, Rejected
from scheduler.core.source import Source
from scheduler.web.backend import Received, Served
from scheduler.web.connection import AT_ONCE
from scheduler.web.porter import Porter
from scheduler.web.reception import OURS, Reception, Receptions
from scheduler.web.seldom import Seldom
from scheduler.web.webhook_answers import Ready, ready, refusal, spoken, stored

PREFIX = "/webhooks/"
ROUTE = "/webhooks/{source}"
SMALL = 64 * 1024
"""Bytes of a body that is always read; of larger ones ..."""
MOST_HELD = 64 << 20
"""... all that is under way at one address may come to so many bytes; who comes then is asked to try again."""

LARGE = 256 * 1024
"""Bytes of a body above which others must not wait until it is read and verified."""

_PROBES = frozenset({"GET", "HEAD"})
_MALFORMED = frozenset(
    {
        Refusal.BODY_MALFORMED,
        Refusal.HEADER_REPEATED,
        Refusal.ID_MISSING,
        Refusal.ID_MALFORMED,
        Refusal.EVENT_ID_MISSING,
        Refusal.EVENT_ID_MALFORMED,
    }
)


class Webhooks:
    """Used from one event loop; `receptions` are shared by all addresses."""

    def __init__(
        self,
        receptions: Receptions,
        inbox: Inbox,
        served: Served,
        received: Received,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._receptions = receptions
        self._inbox = inbox
        self._porter: Porter[NewEvent, Stored | SchedulerError] = Porter(inbox.submit)
        self._served = served
        self._received = received
        self._now = now
        self._held = 0
        self._log = structlog.get_logger("web")
        self._seldom = Seldom(self._log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that is still to come, or for which others must not wait."""
        begun = time.perf_counter()
        try:
            answer = await self._answer(scope, receive)
        except Exception:
            answer = self._failed(scope)
        if answer is None:
            return  # Nobody is there any more.
        self._count(scope, begun, answer)
        await answer.send(scope, send)

    def at_hand(self, scope: Scope, body: bytes) -> bool:
        """A small request that is here already (connection.AtHand): the same without a task of its own."""
        if len(body) > LARGE:
            return False
        begun = time.perf_counter()
        try:
            answer = self._answer_at_hand(scope, body, begun)
        except Exception:
            answer = self._failed(scope)
        if answer is not None:
            self._tell(scope, begun, answer)
        return True

    async def _answer(self, scope: Scope, receive: Receive) -> Ready | None:
        admitted = self._admit(scope)
        if isinstance(admitted, Ready):
            return admitted
        reception, headers = admitted
        source = reception.source
        body = await self._read(receive, source.max_body)
        if body is None or isinstance(body, Ready):
            return None if body is None else self._say(source.name, "too_large", body)
        self._held += len(body)
        try:
            incoming, now = _incoming(scope, headers, body, source), self._now()
            if len(body) > LARGE:
                found = await to_thread.run_sync(reception.judge, incoming, now)
            else:
                found = reception.judge(incoming, now)
            event = self._sift(reception, incoming, found, now)
            if isinstance(event, Ready):
                return event
            (outcome,) = await self._porter.ask([event])
            return self._outcome(source, outcome)
        finally:
            self._held -= len(body)

    def _answer_at_hand(self, scope: Scope, body: bytes, begun: float) -> Ready | None:
        """None: it follows when the event is on disk."""
        admitted = self._admit(scope)
        if isinstance(admitted, Ready):
            return admitted
        reception, headers = admitted
        source = reception.source
        if len(body) > source.max_body:
            return self._say(source.name, "too_large", refusal(413))
        incoming, now = _incoming(scope, headers, body, source), self._now()
        event = self._sift(reception, incoming, reception.judge(incoming, now), now)
        if isinstance(event, Ready):
            return event
        self._porter.hand([event], partial(self._settle, scope, begun, source, len(body)))
        self._held += len(body)
        return None

    def _settle(
        self, scope: Scope, begun: float, source: Source, held: int, outcomes: list[Stored | SchedulerError]
    ) -> None:
        self._held -= held
        try:
            answer = self._outcome(source, outcomes[0])
        except Exception:
            answer = self._failed(scope)
        self._tell(scope, begun, answer)

    def _tell(self, scope: Scope, begun: float, answer: Ready) -> None:
        self._count(scope, begun, answer)
        scope[AT_ONCE](answer.status, answer.head, answer.body)

    def _count(self, scope: Scope, begun: float, answer: Ready) -> None:
        method = scope["method"] if answer.status != 405 else "other"
        self._served(ROUTE, method, answer.status, time.perf_counter() - begun)

    def _failed(self, scope: Scope) -> Ready:
        self._log.exception("request_failed", method=scope["method"], route=ROUTE)
        return refusal(503)

    # ------------------------------------------------------------ the steps

    def _admit(self, scope: Scope) -> tuple[Reception, Headers] | Ready:
        """By what is known before the body."""
        reception = self._reception(scope)
        if isinstance(reception, Ready):
            return reception
        headers = Headers.raw(scope["headers"])
        refused = self._bar(reception, headers)
        return (reception, headers) if refused is None else refused

    def _reception(self, scope: Scope) -> Reception | Ready:
        """Of the source that the request is for, if it brings something."""
        name = scope["path"][len(PREFIX) :]
        try:
            reception = self._receptions.find(name)
        except InvalidInput as error:
            self._seldom.warn("webhook_source_broken", name, source=name, error=str(error))
            return self._say(name, "unavailable", refusal(503))
        if reception is None:
            return self._say("other", "unknown_source", refusal(404))
        if scope["method"] == "POST":
            return reception
        return ready(200, b'{"status":"ok"}') if scope["method"] in _PROBES else refusal(405)

    def _bar(self, reception: Reception, headers: Headers) -> Ready | None:
        """Why the body is not read."""
        source, bucket = reception.source, reception.bucket
        wait = 0.0 if bucket is None else bucket.wait()
        if wait:
            return self._say(source.name, "too_many", refusal(429, math.ceil(wait)))
        if not reception.scheme.needs_secret and headers.get("origin") is not None:
            # No sender but a browser says that: a page that its user's network lets in.
            return self._say(source.name, "unsigned_page", refusal(401))
        announced = headers.get("content-length") or ""
        if announced.isdigit() and int(announced[:18]) > source.max_body:
            return self._say(source.name, "too_large", refusal(413))
        return None

    async def _read(self, receive: Receive, limit: int) -> bytes | Ready | None:
        """The body; an answer if it is too large; None if its sender is gone."""
        message = await receive()
        if not message.get("more_body", False):
            if message["type"] == "http.disconnect":
                return None
            body: bytes = message.get("body", b"")
            return refusal(413) if len(body) > limit else body
        return await self._read_on(message.get("body", b""), receive, limit)

    async def _read_on(self, first: bytes, receive: Receive, limit: int) -> bytes | Ready | None:
        parts, size, more = [first], len(first), True
        self._held += size
        try:
            while more:
                if size > limit:
                    return refusal(413)
                if size > SMALL and self._held > MOST_HELD:
                    self._seldom.warn("webhook_bodies_full", held=self._held)
                    return refusal(503)
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
                self._held += len(part)
                more = message.get("more_body", False)
            return refusal(413) if size > limit else b"".join(parts)
        finally:
            self._held -= size

    def _sift(
        self, reception: Reception, incoming: Incoming, found: NewEvent | Answer | Rejected, now: datetime
    ) -> NewEvent | Ready:
        """The event to store, or the answer to what is none."""
        name = reception.source.name
        if isinstance(found, Rejected):
            return self._refuse(reception, incoming, found, now)
        if isinstance(found, Answer):
            return self._say(name, "handshake", spoken(found))
        # Only what is signed counts: nobody else can use up what its sender may send.
        wait = 0.0 if reception.bucket is None else reception.bucket.take()
        return self._say(name, "too_many", refusal(429, math.ceil(wait))) if wait else found

    def _outcome(self, source: Source, outcome: Stored | SchedulerError) -> Ready:
        if isinstance(outcome, Stored):
            return self._say(source.name, "stored" if outcome.new else "duplicate", stored(source.answer, outcome))
        if isinstance(outcome, NotFound):
            return self._say("other", "unknown_source", refusal(404))
        self._seldom.warn("webhook_not_stored", source.name, source=source.name, error=str(outcome))
        return self._say(source.name, "unavailable", refusal(503))

    def _refuse(self, reception: Reception, incoming: Incoming, found: Rejected, now: datetime) -> Ready:
        name = reception.source.name
        self._seldom.warn("webhook_refused", f"{name} {found.reason}", source=name, reason=found.reason, why=found.why)
        self._inbox.refuse(reception.reject(incoming, found, now))
        if found.reason in OURS:
            answer = refusal(503)
        elif found.reason in _MALFORMED:
            answer = refusal(415 if found.reason is Refusal.BODY_MALFORMED and _is_foreign(incoming) else 400)
        else:
            answer = refusal(401)
        return self._say(name, str(found.reason), answer)

    def _say(self, source: str, what: str, answer: Ready) -> Ready:
        self._received(source, what)
        return answer


def _incoming(scope: Scope, headers: Headers, body: bytes, source: Source) -> Incoming:
    return Incoming(headers, body, source.url, scope["query_string"].decode("latin-1"))


def _is_foreign(incoming: Incoming) -> bool:
    """Whether the request itself says that its body is neither JSON nor a form."""
    kind = (incoming.headers.get("content-type") or "").partition(";")[0].strip().lower()
    encoded = (incoming.headers.get("content-encoding") or "identity").lower() != "identity"
    return encoded or not (not kind or kind.endswith("json") or kind == "application/x-www-form-urlencoded")
