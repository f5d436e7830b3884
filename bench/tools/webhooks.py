"""Signed webhooks as a provider sends them, ready to be sent before anybody measures."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from pathlib import Path

SECRET = "bench-secret"
"""Of senders and receivers that live for one measurement."""
HEADER = "X-Hub-Signature-256"
SIZE = 700
"""Bytes of a body."""


def webhooks(path: str, first: int, count: int) -> list[bytes]:
    """Requests whose events are `first`, `first + 1` and so on, each with a signature of its own."""
    return [_webhook(path, number) for number in range(first, first + count)]


def event_id(number: int) -> str:
    return f"evt-{number:08}"


def body(number: int) -> bytes:
    """What the provider says of this event: SIZE bytes."""
    fields = {"id": event_id(number), "type": "order.changed", "order": number % 1000, "text": ""}
    short = len(json.dumps(fields))
    return json.dumps({**fields, "text": "x" * (SIZE - short)}).encode()


def source(folder: Path, **keys: str) -> str:
    """Sources in flow style: `sender`, who signs like most of them; its secret lies in that folder."""
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    sender = {
        "signature": {"scheme": "hmac", "header": HEADER, "prefix": "sha256="},
        "secrets": [{"file": str(secret)}],
        "event": {"id": "id", "type": "type"},
    }
    return json.dumps({"sender": {**sender, **keys}})


def _webhook(path: str, number: int) -> bytes:
    text = body(number)
    signature = hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"{HEADER}: sha256={signature}\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def free_port() -> int:
    """One of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
