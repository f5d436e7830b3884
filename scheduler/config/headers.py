"""Headers of a request that the scheduler sends: names with texts or secrets."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from scheduler.config.interpolation import REFERENCE
from scheduler.config.models.secret import SecretModel
from scheduler.config.refusal import refuse, shown, text_of
from scheduler.core.model import Json

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = re.compile(r"(?i)idempotency-key|sched-.*|content-length|transfer-encoding|host|connection")


def _check_headers(value: Any) -> Any:
    if not isinstance(value, dict):
        refuse(f"{shown(value)} is not a mapping", "write one `Name: value` per line below it")
    for name in value:
        if not _HEADER.fullmatch(name):
            refuse(f"{shown(name)} is not a name of a header", "use letters, digits and -")
        if _OURS.fullmatch(name):
            refuse(f"the header `{name}` is set by the scheduler", "remove it")
    return value


def _header(value: object) -> str | SecretModel:
    if isinstance(value, dict | SecretModel):
        return SecretModel.model_validate(value)
    text = text_of(value)
    if text is None or re.search(r"[\r\n\0]", text):
        refuse(f"{shown(value)} is not one line of text", "write a text, {env: NAME} or {file: PATH}")
    found = REFERENCE.search(text)
    if found is not None:
        prefix = f", prefix: '{text[: found.start()]}'" if found.start() else ""
        hint = f"write {{env: {found[1]}{prefix}}}: read when the run starts, never kept"
        refuse(f"`{found[0]}` is not replaced in headers", hint)
    return text


def written_headers(headers: dict[str, str | SecretModel]) -> dict[str, Json]:
    """What means the same in jobs.yaml, secrets as references."""
    return {name: one.written() if isinstance(one, SecretModel) else one for name, one in headers.items()}


_SCHEMA = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": ["string", "number"]}, SecretModel.model_json_schema()]},
}

Headers = Annotated[
    dict[str, Annotated[str | SecretModel, PlainValidator(_header)]],
    BeforeValidator(_check_headers),
    WithJsonSchema(_SCHEMA),
]
