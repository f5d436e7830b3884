"""Reading requests: bounded JSON bodies with known fields, and query parameters. Whatever is wrong is a clean 4xx."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from starlette.requests import Request

from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.stamp import from_text
from scheduler.web.answers import Malformed

BODY_LIMIT = 1 << 20
DEPTH_LIMIT = 100
TEXT_LIMIT = 2_000
"""Characters of a reason or a key."""
NAME_LIMIT = 200


async def read_object(request: Request, fields: Collection[str]) -> dict[str, Any]:
    """The JSON object of the body (none: an empty one), with no other keys than `fields`.

    Raises Malformed (400, 413) or InvalidInput (422) naming the fields."""
    raw = await _read(request)
    if not raw.strip():
        return {}
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise Malformed("the body must be a JSON object", hint='write {"reason": "…"}')
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise InvalidInput(
            f"unknown {'fields' if len(unknown) > 1 else 'field'} {', '.join(map(_shown, unknown))}",
            hint=_meant(unknown, fields),
        )
    return value


def parse_json(raw: bytes) -> Any:
    """Strict JSON: UTF-8, finite numbers, no lone surrogates, at most DEPTH_LIMIT deep. Raises Malformed."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
        _check_depth(value)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise Malformed("the JSON is nested too deeply") from None
    except UnicodeError:
        raise Malformed("the body is not UTF-8 text", hint="send JSON in UTF-8") from None
    except ValueError as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    return value


def text_field(body: dict[str, Any], name: str, limit: int = TEXT_LIMIT) -> str:
    """That field as text, empty if it is absent or null."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` must be text")
    if len(value) > limit:
        raise InvalidInput(f"`{name}` has {len(value)} characters, at most {limit} are kept", hint="shorten it")
    return value


def flag_field(body: dict[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false")
    return value


def instant_field(body: dict[str, Any], name: str) -> datetime | None:
    value = text_field(body, name, 100)
    return instant_of(value, name) if value else None


def names_field(body: dict[str, Any], name: str) -> list[str]:
    """A list of at least one job name."""
    value = body.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise InvalidInput(f"`{name}` must be a list of names", hint=f'write {{"{name}": ["a", "b"]}}')
    if len(value) > 10_000:
        raise InvalidInput(f"`{name}` has {len(value)} entries, at most 10000 are taken at once")
    return [plain_name(one) for one in value]


def plain_name(name: str) -> str:
    """A name that can exist at all; NotFound for what no job is called (control characters, hundreds of letters)."""
    if len(name) > NAME_LIMIT or not name.isprintable():
        raise NotFound(f"there is nothing named {_shown(name)}")
    return name


def query_text(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if len(value) > NAME_LIMIT * 10 or not (value.isprintable() and _encodable(value)):
        raise InvalidInput(f"`{name}` must be short printable text")
    return value


def query_list(request: Request, name: str) -> tuple[str, ...]:
    """All values of a repeatable, comma-separated parameter."""
    values = request.query_params.getlist(name)
    if sum(map(len, values)) > 100_000 or not all(one.isprintable() and _encodable(one) for one in values):
        raise InvalidInput(f"`{name}` must be short printable text")
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def query_number(request: Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18) or not low <= int(text) <= high:
        raise InvalidInput(f"`{name}` must be a number from {low} to {high}")
    return int(text)


def query_flag(request: Request, name: str, default: bool = False) -> bool:
    text = request.query_params.get(name)
    if text is None:
        return default
    if text not in ("true", "false", "1", "0"):
        raise InvalidInput(f"`{name}` must be true or false")
    return text in ("true", "1")


def query_instant(request: Request, name: str) -> datetime | None:
    text = request.query_params.get(name)
    return None if text is None else instant_of(text, name)


def instant_of(text: str, name: str) -> datetime:
    try:
        return from_text(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"`{name}` is no instant: {_shown(text)}", hint="write 2026-03-08T07:00:00Z") from None


def author_of(request: Request) -> str:
    """Who asks: the name of the process's user on the Unix socket, else the address."""
    return request.client.host if request.client is not None else "somebody"


async def _read(request: Request) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:18]) > BODY_LIMIT:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_LIMIT:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> Malformed:
    return Malformed(
        f"the body is larger than {BODY_LIMIT} bytes",
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


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(text: str) -> str:
    return ascii(text[:60]) if not text.isprintable() else f"`{text[:60]}`"


def _meant(unknown: list[str], fields: Collection[str]) -> str:
    close = get_close_matches(unknown[0], fields, 1)
    known = f"known are {', '.join(sorted(fields))}" if fields else "this request takes no fields"
    return f"did you mean `{close[0]}`? {known}" if close else known
