"""Reading what comes from outside: bounded bodies, strict JSON, names. Whatever is wrong is a clean 4xx."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.requests import ClientDisconnect, Request

from scheduler.core.errors import NotFound
from scheduler.web.answers import Malformed

BODY_LIMIT = 1 << 20
DEPTH_LIMIT = 100
NAME_LIMIT = 200
JSON_TYPES = ("application/json", "text/json", "application/x-www-form-urlencoded")
"""The last one is what `curl -d` says of everything."""


async def read_body(request: Request, limit: int = BODY_LIMIT, types: tuple[str, ...] = JSON_TYPES) -> bytes:
    """The bytes of the body. Malformed: 413 past `limit`, also if it comes in chunks; 415 for another type than these
    (none at all is taken for the first)."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:18]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        more = message.get("more_body", False)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if size and kind and kind not in types:
        raise Malformed(f"the body is {ascii(kind[:60])[1:-1]}, not {types[0]}", status=415, hint=f"send {types[0]}")
    return b"".join(parts)


def parse_json(raw: bytes) -> Any:
    """Strict JSON: UTF-8, finite numbers, no lone surrogates, at most DEPTH_LIMIT deep. Raises Malformed."""
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
        _check_depth(value)
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise Malformed("the JSON is nested too deeply") from None
    except UnicodeError:
        raise Malformed("the body is not UTF-8 text", hint="send JSON in UTF-8") from None
    except ValueError as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    return value


def plain_name(name: str) -> str:
    """A name that can exist at all; NotFound for what no job is called (control characters, hundreds of letters)."""
    if len(name) > NAME_LIMIT or not name.isprintable():
        raise NotFound(f"there is nothing named {name[:60]!a}")
    return name


def _too_large(limit: int) -> Malformed:
    return Malformed(
        f"the body is larger than {limit} bytes",
        status=413,
        hint="put large data into a file or bucket and send its address",
    )


def _check_depth(value: Any) -> None:
    layer = [value]
    for _ in range(DEPTH_LIMIT):
        layer = [
            inner
            for one in layer
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not layer:
            return
    raise RecursionError


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
