"""JSON that came from a job: parsed and made fit for every database, or refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn

Json = Any  # as in core.model, which brings along more than worker processes should load

RESULT_LIMIT = 256 * 1024
"""Bytes of a result as JSON text; a larger one belongs in a file or table of the job's own."""

_DEEPEST = 100


def parse(data: bytes) -> Json:
    """One JSON text in UTF-8. Raises ValueError, also for NaN, infinities and nesting deeper than 100."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return storable(value)


def to_json(value: object) -> bytes:
    """JSON text of a storable value. Raises ValueError (also for NaN) or TypeError with the offending type."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise ValueError("nested too deeply") from None


def storable(value: Json, depth: int = 0) -> Json:
    """The value with U+FFFD for what no database takes in text (NUL, lone surrogates); ValueError for infinities."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    match value:
        case str():
            return clean_text(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            _no_number(str(value))
        case list():
            return [storable(item, depth + 1) for item in value]
        case dict():
            return {clean_text(key): storable(item, depth + 1) for key, item in value.items()}
    return value


def clean_text(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
