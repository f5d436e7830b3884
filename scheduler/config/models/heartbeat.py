"""`heartbeat`: whether somebody waits for the job's success, and who hears of its runs outside."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema

from scheduler.config.fields import to_url
from scheduler.config.models.base import Model, Nested
from scheduler.config.models.secret import SecretModel
from scheduler.config.refusal import refuse, shown
from scheduler.core.model import Json
from scheduler.core.secret import Secret
from scheduler.core.value_object import value_object


def _ping_url(value: object, info: ValidationInfo) -> str | SecretModel:
    if isinstance(value, dict | SecretModel):
        return SecretModel.model_validate(value)
    return to_url(value, info)


_URL_SCHEMA = {"type": "string", "pattern": r"^([Hh][Tt][Tt][Pp][Ss]?://|\$\{)"}
PingUrl = Annotated[
    str | SecretModel,
    PlainValidator(_ping_url),
    WithJsonSchema({"anyOf": [_URL_SCHEMA, SecretModel.model_json_schema()]}),
]


class HeartbeatModel(Model):
    """The mapping form."""

    ping_url: Annotated[
        PingUrl,
        Field(
            description="A dead man's switch outside (healthchecks.io and its kind) that is told of each run: a URL in "
            "which ${NAME} is replaced, or {env: NAME} or {file: PATH}."
        ),
    ]


@value_object
class Heartbeat:
    """`expected`: the job has a deadline. `ping_url`: who is told of its runs outside; None: nobody."""

    expected: bool = True
    ping_url: str | SecretModel | None = None

    def url(self) -> str | Secret | None:
        return self.ping_url.noun() if isinstance(self.ping_url, SecretModel) else self.ping_url

    def written(self) -> Json:
        """The shortest form in jobs.yaml that means the same."""
        if self.ping_url is None:
            return self.expected
        return {"ping_url": self.ping_url if isinstance(self.ping_url, str) else self.ping_url.written()}


def _to_heartbeat(value: object, info: ValidationInfo) -> Heartbeat:
    if isinstance(value, bool):
        return Heartbeat(value)
    if not isinstance(value, dict):
        hint = "write true or false, without quotes, or {ping_url: https://…}"
        refuse(f"{shown(value)} is neither true nor false", hint)
    return Heartbeat(True, HeartbeatModel.model_validate(value, context=info.context).ping_url)


HeartbeatField = Annotated[
    Heartbeat,
    PlainValidator(_to_heartbeat),
    Nested(HeartbeatModel),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, HeartbeatModel.model_json_schema()]}),
]
