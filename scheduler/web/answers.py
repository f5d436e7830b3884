"""JSON and problems (RFC 9457) as responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from scheduler.core.errors import DatabaseAway, InvalidInput, NotFound, Refused, SchedulerError, Unavailable

STATUS_OF = ((InvalidInput, 422), (NotFound, 404), (Refused, 409), (Unavailable, 503))

_TITLES = {
    400: "malformed request",
    401: "a token is needed",
    403: "not allowed",
    404: "not found",
    405: "method not allowed",
    409: "refused",
    413: "too large",
    415: "unsupported media type",
    422: "invalid input",
    429: "too many requests",
    500: "internal error",
    503: "unavailable",
}
RETRY_AFTER = "2"
"""Seconds after which it is worth asking again."""


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Answer(Response):
    """A JSON body. Text that no UTF-8 can carry (lone surrogates out of some program) is escaped, never an error."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        self.content = content
        try:
            return _ENCODER.encode(content).encode()
        except UnicodeEncodeError:
            return json.dumps(content, separators=(",", ":")).encode()

    def with_content(self, content: Any) -> Answer:
        """The same answer with another body."""
        headers = {
            name: value for name, value in self.headers.items() if name not in ("content-length", "content-type")
        }
        return Answer(content, status_code=self.status_code, headers=headers)


class Problem(Answer):
    media_type = "application/problem+json"

    def __init__(
        self, status: int, detail: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        content = {"title": _TITLES.get(status, "error"), "status": status, "detail": detail}
        if hint is not None:
            content["hint"] = hint
        super().__init__(content, status_code=status, headers=dict(headers or {}))


def problem_of(error: SchedulerError) -> Problem:
    """The problem that says what `error` says."""
    status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), 500)
    hint = error.hint
    if isinstance(error, DatabaseAway):
        # Those who asked for something else are told what is answered without it.
        hint = "; ".join(filter(None, (hint, "what to look at: `schedctl db status`")))
    headers = {"Retry-After": RETRY_AFTER} if status == 503 else None
    return Problem(status, error.reason, hint=hint, headers=headers)


class Malformed(SchedulerError):
    """The request itself cannot be understood; `status` is 400, 413 or 415."""

    def __init__(self, reason: str, *, status: int = 400, hint: str | None = None) -> None:
        super().__init__(reason, hint=hint)
        self.status = status
