"""What senders of webhooks are answered: whole ASGI messages, made once where they are always the same."""

from __future__ import annotations

import json
from functools import cache

from starlette.types import Scope, Send

from scheduler.core.event import Stored
from scheduler.core.preset import Answer
from scheduler.core.value_object import value_object
from scheduler.web.answers import RETRY_AFTER
from scheduler.web.connection import AT_ONCE

_JSON = "application/json"
_PROBLEM = "application/problem+json"
_DETAILS = {
    400: "the request cannot be read",
    401: "the request is not signed as it must be",
    404: "there is no such page",
    405: "this page takes POST",
    413: "the body is too large",
    415: "the body must be JSON or a form, not compressed",
    429: "too many requests; try again later",
    503: "try again later",
}
_quoted = json.JSONEncoder().encode
_WITHOUT_BODY = frozenset({204, 205, 304})


@value_object
class Ready:
    """A whole answer. `head`: its header lines."""

    status: int
    head: bytes
    body: bytes

    async def send(self, scope: Scope, send: Send) -> None:
        at_once = scope.get(AT_ONCE)
        if at_once is not None:
            at_once(self.status, self.head, self.body)
            return
        headers = [tuple(line.split(b": ", 1)) for line in self.head.splitlines()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def ready(status: int, body: bytes, content_type: str = _JSON, more: bytes = b"") -> Ready:
    """`more`: further header lines."""
    if status in _WITHOUT_BODY:
        return Ready(status, more, b"")
    if not body:
        return Ready(status, more + b"content-length: 0\r\n", b"")
    kind = content_type.encode("latin-1")
    return Ready(status, b"%scontent-type: %s\r\ncontent-length: %d\r\n" % (more, kind, len(body)), body)


def stored(answer: Answer, event: Stored) -> Ready:
    """What this provider wants to hear; without a text of its own, which event it was and whether it was known."""
    if answer.body is not None:
        return _always(answer)
    duplicate = "false" if event.new else "true"
    return ready(answer.status, f'{{"event":{_quoted(event.id)},"duplicate":{duplicate}}}'.encode())


@cache
def refusal(status: int, retry_after: int | None = None) -> Ready:
    """The same for every stranger, whatever the reason: what it is stays with the operator."""
    content = {"title": "refused" if status < 500 else "unavailable", "status": status, "detail": _DETAILS[status]}
    more = b""
    if status in (429, 503):
        more = f"retry-after: {retry_after or RETRY_AFTER}\r\n".encode()
    elif status == 405:
        more = b"allow: POST, GET, HEAD\r\n"
    return ready(status, json.dumps(content).encode(), _PROBLEM, more)


def spoken(answer: Answer) -> Ready:
    """A text that somebody else wrote: also what no UTF-8 can carry."""
    return ready(answer.status, (answer.body or "").encode("utf-8", "replace"), answer.content_type)


_always = cache(spoken)
