"""Answers for those who cannot be given one in another way."""

from __future__ import annotations

import json

from scheduler.web.answers import RETRY_AFTER

_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def problem_bytes(status: int, detail: str) -> bytes:
    """A whole one, after which the connection is closed."""
    phrase = _PHRASES[status]
    body = json.dumps({"title": phrase.lower(), "status": status, "detail": detail}).encode()
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nserver: schedulerd\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n"
    )
    if status == 503:
        head += f"retry-after: {RETRY_AFTER}\r\n"
    return head.encode() + b"\r\n" + body
