"""`http`: one request."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from scheduler.config.actions.base import Options
from scheduler.config.fields import Url, Whole, Word, to_text
from scheduler.config.interpolation import REFERENCE
from scheduler.config.models.secret import SecretModel
from scheduler.config.problem import Path
from scheduler.config.refusal import refuse, shown, text_of
from scheduler.core.model import Json
from scheduler.core.secret import Secret

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = re.compile(r"(?i)idempotency-key|sched-.*|content-length|transfer-encoding|host|connection")

Method = Annotated[str, Word(*METHODS)]
Status = Annotated[int, Whole(100, 599)]


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


def _statuses(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _body(value: object) -> str:
    if isinstance(value, dict | list):
        refuse(
            "the body is a text (a template)",
            "write it as a text block with |, as: '{\"id\": {{ payload.id | tojson }}}'",
        )
    text = to_text(value)
    if any(mark in text for mark in ("{{", "{%", "{#")):
        _check_template(text)
    return text


def _check_template(text: str) -> None:
    from jinja2 import Environment, TemplateSyntaxError  # only few bodies are templates

    try:
        Environment().compile(text, raw=True)  # noqa: S701  # nothing is rendered here
    except TemplateSyntaxError as error:
        refuse(
            f"line {error.lineno} of the template: {error.message}",
            "correct it; values are written {{ payload.id | tojson }}",
        )


_STATUS_SCHEMA = {"type": "integer", "minimum": 100, "maximum": 599}
HEADERS_SCHEMA = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": ["string", "number"]}, SecretModel.model_json_schema()]},
}


class HttpOptions(Options):
    kind: ClassVar[str] = "http"
    summary: ClassVar[str] = "Sends one HTTP request."
    default_timeout: ClassVar[timedelta] = timedelta(minutes=3)
    replaced: ClassVar[tuple[Path, ...]] = (("url",),)

    method: Annotated[Method, Field(description="POST unless written.")] = "POST"
    url: Annotated[Url, Field(description="Where to; ${NAME} is replaced from the daemon's environment.")]
    headers: Annotated[
        dict[str, Annotated[str | SecretModel, PlainValidator(_header)]],
        BeforeValidator(_check_headers),
        WithJsonSchema(HEADERS_SCHEMA),
        Field(description="Further headers; a value may be a secret: {env: NAME, prefix: 'Bearer '}."),
    ] = Field(default_factory=dict)
    body: Annotated[
        str | None,
        PlainValidator(_body),
        WithJsonSchema({"type": "string"}),
        Field(description="A Jinja2 template of the body; without it the run's payload is sent as JSON."),
    ] = None
    expect_status: Annotated[
        list[Status],
        BeforeValidator(_statuses),
        WithJsonSchema({"anyOf": [_STATUS_SCHEMA, {"type": "array", "items": _STATUS_SCHEMA}]}),
        Field(description="Which answers mean success; without it every 2xx."),
    ] = Field(default_factory=list)

    def options(self) -> dict[str, Json]:
        made: dict[str, Json] = {"method": self.method, "url": self.url}
        if self.headers:
            made["headers"] = {
                name: one.written() if isinstance(one, SecretModel) else one for name, one in self.headers.items()
            }
        if self.body is not None:
            made["body"] = self.body
        if self.expect_status:
            made["expect_status"] = list(self.expect_status)
        return made

    def secrets(self) -> dict[Path, Secret]:
        found = {name: one for name, one in self.headers.items() if isinstance(one, SecretModel)}
        return {("headers", name): one.noun() for name, one in found.items()}
