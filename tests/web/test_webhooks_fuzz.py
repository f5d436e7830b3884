"""Whatever bytes come: never a 5xx, never a traceback, no memory that stays."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import random
import socket
import string
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from scheduler.core.errors import InvalidInput
from scheduler.core.event import Reject
from scheduler.core.preset import EventFields
from scheduler.core.secret import Secret
from scheduler.core.signature import LiveSecret
from scheduler.core.source import Source
from scheduler.signatures.registry import build, presets
from tests.long import LONG
from tests.web.hooks import FIELDS, Hooks, Inbox, body_of, source

REQUESTS = 30_000 if LONG else 1_500
GROWS_BY = 4 << 20
"""Bytes by which the process may grow over all requests after the first few hundred."""
URL = "https://hooks.example.com/webhooks/it"
SECRETS = {"adyen": "44782def" * 8, "standard": "whsec_" + "a2" * 16}
MAX_BODY = 40_000


class Forgetful(Inbox):
    """Keeps a few of each."""

    def submit(self, events: Any, ticket: Any, deliver: Any) -> None:
        if len(self.events) > 50:
            self.events.clear()
        super().submit(events, ticket, deliver)

    def refuse(self, reject: Reject) -> None:
        super().refuse(reject)
        del self.rejects[:-50]


def sources() -> list[Source]:
    """One for every preset, and those whose keys anybody can write."""
    secret = (Secret(env="SECRET"),)
    known = [
        source(
            kind,
            scheme=kind,
            options={},
            event=preset.event,
            handshakes=preset.handshakes,
            answer=preset.answer,
            secrets=(Secret(env=f"SECRET_{kind}"),),
            url=URL,
            max_body=MAX_BODY,
        )
        for kind, preset in presets().items()
    ]
    timed = {
        "header": "X-Signature",
        "timestamp": "header:X-Time",
        "id": "header:X-Id",
        "template": "{id}.{timestamp}.{body}",
    }
    odd = EventFields("items[?a > `1`] | [0].id || event_id", "to_string(type)", "at || event", "join('', subject)")
    return [
        *known,
        source("timed", options=timed, secrets=secret, max_body=MAX_BODY),
        source("open", scheme="none", options={"trust": "network"}, secrets=(), max_body=MAX_BODY),
        source("odd", scheme="none", options={"trust": "network"}, secrets=(), event=odd, max_body=MAX_BODY),
        source("plain", event=FIELDS, secrets=secret, max_body=MAX_BODY),
    ]


class Mutator:
    """Requests that were good before something was done to them."""

    def __init__(self, chance: random.Random, all_sources: list[Source]) -> None:
        self.chance = chance
        self.sources = all_sources

    def request(self) -> bytes:
        one = self.chance.choice(self.sources)
        body, headers = self._event(one)
        if self.chance.random() < 0.5:
            body = self._body(body)
        query = ""
        if self.chance.random() < 0.8:
            secret = LiveSecret("it", SECRETS.get(one.scheme, "a-secret-nobody-knows"))
            with contextlib.suppress(InvalidInput):  # A body that this provider never sends.
                signed = build(one.scheme, one.options).sign(body, secret, now=datetime.now(UTC), url=URL)
                body, query = signed.body, signed.query
                headers |= signed.headers
        path = f"/webhooks/{one.name}" + (f"?{query}" if query else "")
        fields = [(name.encode(), value.encode("utf-8", "replace")) for name, value in headers.items()]
        for _ in range(self.chance.choice((0, 0, 1, 2, 5))):
            self._spoil(fields)
        raw = self._raw(path, fields, body)
        return self._flip(raw) if self.chance.random() < 0.3 else raw

    def _event(self, one: Source) -> tuple[bytes, dict[str, str]]:
        preset = presets().get(one.scheme)
        unique = f"e{self.chance.randrange(1000)}"
        if preset is not None and preset.example is not None:
            body, headers = preset.example.filled(unique, datetime.now(UTC))
        else:
            body, headers = body_of(unique, occurred_at=self.chance.choice((1790000000, "soon", -1, 1e300))), {}
        return body, {"Content-Type": "application/json", "X-Time": "1790000000", "X-Id": unique, **headers}

    def _body(self, body: bytes) -> bytes:
        chance = self.chance
        ways: list[Callable[[], bytes]] = [
            lambda: b"",
            lambda: body[: chance.randrange(len(body) + 1)],
            lambda: chance.randbytes(chance.choice((1, 10, 700, 30_000))),
            lambda: body + body,
            lambda: b"[" * chance.choice((10, 5_000)) + b"]" * 10,
            lambda: b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
            lambda: json.dumps({"event_id": chance.choice(_VALUES), "event": chance.choice(_VALUES)}).encode(),
            lambda: json.dumps({"type": "url_verification", "challenge": chance.choice(_VALUES)}).encode(),
            lambda: b'{"event_id": ' + b"9" * 5_000 + b"}",
            lambda: b'{"event_id": NaN}',
            lambda: b"\xef\xbb\xbf" + body,
            lambda: body.decode("utf-8", "replace").encode("utf-16"),
            lambda: b"payload=" + body + b"&a=%ff&%=&&=;" * chance.choice((1, 500)),
            lambda: b"x" * (MAX_BODY + chance.choice((-1, 0, 1, 100_000))),
            lambda: json.dumps({"items": [{"a": chance.choice(_VALUES), "id": chance.choice(_VALUES)}]}).encode(),
        ]
        return chance.choice(ways)()

    def _spoil(self, fields: list[tuple[bytes, bytes]]) -> None:
        chance = self.chance
        which = chance.randrange(len(fields))
        name, value = fields[which]
        ways: list[Callable[[], Any]] = [
            lambda: fields.pop(which) if len(fields) > 1 else None,
            lambda: fields.append((name, value)),
            lambda: fields.append((name.upper(), value[::-1])),
            lambda: fields.__setitem__(which, (name, b"")),
            lambda: fields.__setitem__(which, (name, value[: chance.randrange(len(value) + 1)])),
            lambda: fields.__setitem__(which, (name, value * chance.choice((2, 50)))),
            lambda: fields.__setitem__(which, (name, _line(chance))),
            lambda: fields.append((b"Content-Encoding", chance.choice((b"gzip", b"br", b"identity", b"\xff")))),
            lambda: fields.append(
                (b"Content-Type", chance.choice((b"text/xml", b"application/x-www-form-urlencoded", b"")))
            ),
            lambda: fields.append((b"Expect", b"100-continue")),
            lambda: fields.append((b"Origin", b"https://evil.example")),
            lambda: fields.extend((b"X-%d" % one, b"y") for one in range(200)),
        ]
        chance.choice(ways)()

    def _raw(self, path: str, fields: list[tuple[bytes, bytes]], body: bytes) -> bytes:
        chance = self.chance
        method = chance.choice((b"POST",) * 20 + (b"GET", b"HEAD", b"PUT", b"OPTIONS", b"BREW"))
        length = [(b"Content-Length", b"%d" % len(body))]
        if chance.random() < 0.2:
            size = chance.choice((1, 7, 1_000))
            parts = [body[begin : begin + size] for begin in range(0, min(len(body), size * 300), size)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
            body += chance.choice((b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"", b"zz\r\n", b"-1\r\n"))
            length = [(b"Transfer-Encoding", b"chunked")]
        elif chance.random() < 0.1:
            wrong = (b"-1", b"0", b"99999999999999999999", b"abc", b"1, 2", b"+5", b"%d" % (len(body) + 10), b"")
            length = [(b"Content-Length", chance.choice(wrong))]
        if chance.random() < 0.05:
            path = "/webhooks/" + chance.choice(("", "%00", "..%2f..", "a" * 5_000, "it?" + "&a=b" * 500, "é"))
        lines = [b"Host: hooks.example.com", b"Connection: close"]
        lines += [name + b": " + value for name, value in [*fields, *length]]
        return b"%s %s HTTP/1.1\r\n%s\r\n\r\n%s" % (method, path.encode(), b"\r\n".join(lines), body)

    def _flip(self, raw: bytes) -> bytes:
        mutant = bytearray(raw)
        for _ in range(self.chance.randint(1, 4)):
            place = self.chance.randrange(len(mutant))
            mutant[place : place + self.chance.randint(0, 2)] = self.chance.randbytes(self.chance.randint(0, 2))
        return bytes(mutant)


_KINDS = (b"text/xml", b"application/x-www-form-urlencoded", b"")
_VALUES = [
    None,
    True,
    0,
    -1,
    10**400,
    1.5,
    "",
    " ",
    "\x00",
    "\ud800",
    "x" * 600,
    "é" * 100,
    "2026-13-01",
    [],
    [1],
    {},
    {"a": {}},
    "1e999",
    "../../etc/passwd",
    "a\r\nb: c",
]


def _line(chance: random.Random) -> bytes:
    letters = string.printable.replace("\r", "").replace("\n", "").encode() + bytes(range(128, 256))
    return bytes(chance.choice(letters) for _ in range(chance.choice((1, 20, 300))))


def _sent(address: tuple[str, int], raw: bytes) -> bytes:
    answer = b""
    with socket.create_connection(address, timeout=0.05) as connected, contextlib.suppress(OSError):
        connected.sendall(raw)
        try:
            answer = connected.recv(65536)
        except TimeoutError:  # It waits for the rest of what was cut.
            connected.settimeout(10)
            connected.shutdown(socket.SHUT_WR)
        while part := connected.recv(65536):
            answer += part
    return answer


@pytest.mark.timeout(900)
def test_mutated_requests(caplog: pytest.LogCaptureFixture) -> None:
    every = sources()
    hooks = Hooks(*every)
    hooks.inbox = Forgetful()
    hooks.environ |= {f"SECRET_{one.name}": SECRETS.get(one.scheme, "a-secret-nobody-knows") for one in every}
    hooks.environ["SECRET"] = "a-secret-nobody-knows"
    hooks.now = datetime.now(UTC)
    hooks.renew()
    mutator = Mutator(random.Random(11), every)
    statuses: dict[bytes, int] = {}
    before = 0
    tracemalloc.start(1)
    try:
        with hooks.open() as address, caplog.at_level(logging.WARNING), capture_logs() as logs:
            for number in range(REQUESTS):
                if number == REQUESTS // 3:
                    before = _held(hooks, logs)
                raw = mutator.request()
                status = _sent(address, raw)[9:12]
                assert not status.startswith(b"5"), (status, raw)
                statuses[status] = statuses.get(status, 0) + 1
            grown = _held(hooks, logs) - before
            said = {one["event"] for one in logs}
    finally:
        tracemalloc.stop()
    assert [record.getMessage() for record in caplog.records] == []
    assert "request_failed" not in said
    assert grown < GROWS_BY
    # The mutations get everywhere.
    assert {b"200", b"202", b"400", b"401", b"404", b"405", b"413", b"415"} <= set(statuses)
    assert statuses[b"202"] > REQUESTS // 20


def _held(hooks: Hooks, logs: list[Any]) -> int:
    """Bytes, without what this test itself remembers."""
    hooks.said.clear()
    hooks.served.clear()
    hooks.inbox.events.clear()
    hooks.inbox.rejects.clear()
    del logs[:]
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
