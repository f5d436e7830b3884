"""`http`: one request."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from scheduler.config.actions.base import Options
from scheduler.config.fields import Url, Whole, Word, to_text
from scheduler.config.headers import Headers, written_headers
from scheduler.config.models.secret import SecretModel
from scheduler.config.problem import Path
from scheduler.config.refusal import refuse
from scheduler.config.template import check_template
from scheduler.core.model import Json
from scheduler.core.secret import Secret

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

Method = Annotated[str, Word(*METHODS)]
Status = Annotated[int, Whole(100, 599)]


def _statuses(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _body(value: object) -> str:
    if isinstance(value, dict | list):
        refuse(
            "the body is a text (a template)",
            "write it as a text block with |, as: '{\"id\": {{ payload.id | tojson }}}'",
        )
    text = to_text(value)
    check_template(text)
    return text


Body = Annotated[str, PlainValidator(_body), WithJsonSchema({"type": "string"})]
_STATUS_SCHEMA = {"type": "integer", "minimum": 100, "maximum": 599}


class HttpOptions(Options):
    kind: ClassVar[str] = "http"
    summary: ClassVar[str] = "Sends one HTTP request."
    default_timeout: ClassVar[timedelta] = timedelta(minutes=3)
    replaced: ClassVar[tuple[Path, ...]] = (("url",),)

    method: Annotated[Method, Field(description="POST unless written.")] = "POST"
    url: Annotated[Url, Field(description="Where to; ${NAME} is replaced from the daemon's environment.")]
    headers: Annotated[
        Headers, Field(description="Further headers; a value may be a secret: {env: NAME, prefix: 'Bearer '}.")
    ] = Field(default_factory=dict)
    body: Annotated[
        Body | None,
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
            made["headers"] = written_headers(self.headers)
        if self.body is not None:
            made["body"] = self.body
        if self.expect_status:
            made["expect_status"] = list(self.expect_status)
        return made

    def secrets(self) -> dict[Path, Secret]:
        found = {name: one for name, one in self.headers.items() if isinstance(one, SecretModel)}
        return {("headers", name): one.noun() for name, one in found.items()}
