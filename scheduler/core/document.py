"""The body of a webhook as data, whatever form its sender gave it."""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF8
from urllib.parse import parse_qsl

from .errors import InvalidInput
from .model import Json

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 1000


def document_of(body: bytes, content_type: str = "") -> Json:
    """JSON, or a form as an object of texts (a list where a name comes several times); a form with a field `payload`
    that holds a JSON object is that object, as GitHub and Slack send it.

    InvalidInput if it is neither, or cannot be written as JSON again (NaN, Infinity, 1e999).
    """
    return _form(body) if _FORM in content_type.lower() else _json(body)


def mistaken(body: bytes, content_type: str) -> str:
    """What to tell of a body that looks like JSON and was read as a form, because it says that it is one; else ""."""
    if _FORM not in content_type.lower() or body.lstrip()[:1] not in (b"{", b"["):
        return ""
    return "the body looks like JSON and was read as a form, as its Content-Type says; JSON is sent as application/json"


def _form(body: bytes) -> Json:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        hint = f"percent-encoded UTF-8 and at most {_MOST_FIELDS} fields are read"
        raise InvalidInput("the form cannot be read", hint=hint) from None
    found: dict[str, Json] = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    payload = found.get("payload")
    if isinstance(payload, str) and payload.lstrip().startswith("{"):
        return _json(payload.encode("utf-8"))
    return found


def _json(body: bytes) -> Json:
    try:
        text = body.decode("utf-8-sig") if body.startswith(BOM_UTF8) else body.decode()
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise InvalidInput("the body is not JSON", hint="send UTF-8 JSON, or a form with its content type") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


# Made once: json.loads would make one for each body, which takes as long as reading it.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
