"""One entry of `notify:`, a channel; and what a job's `notify` may be."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from scheduler.config.actions.http import Body, Method
from scheduler.config.fields import NAME_SCHEMA, to_line, to_name, to_text, to_url
from scheduler.config.headers import Headers, written_headers
from scheduler.config.models.base import Model
from scheduler.config.models.secret import SecretModel
from scheduler.config.refusal import refuse, shown
from scheduler.config.suggest import did_you_mean
from scheduler.core.channel import ADDRESS
from scheduler.core.model import Json
from scheduler.core.secret import Secret
from scheduler.core.tiding import KINDS, USUAL

_SCHEME = re.compile(r"[a-z][a-z0-9]{1,29}://\S+", re.IGNORECASE)
_HIDDEN = "://***"


def _apprise_url(value: object) -> str | SecretModel:
    if isinstance(value, dict | SecretModel):
        return SecretModel.model_validate(value)
    text = to_line(value)
    if "${" in text:
        refuse("nothing is replaced in the address of a channel", "write {env: NAME}: read when something is sent")
    if not _SCHEME.fullmatch(text):
        reason = "this is not an address of apprise"
        refuse(reason, "write {env: NAME}, where NAME holds one as wecombot://…, feishu://…, slack://…, mailto://…")
    return text


def _http_url(value: object, info: ValidationInfo) -> str | SecretModel:
    if isinstance(value, dict | SecretModel):
        return SecretModel.model_validate(value)
    return to_url(value, info)


_SECRET = SecretModel.model_json_schema()
Address = Annotated[
    str | SecretModel,
    PlainValidator(_apprise_url),
    WithJsonSchema({"anyOf": [_SECRET, {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9]+://"}]}),
]
HttpAddress = Annotated[
    str | SecretModel,
    PlainValidator(_http_url),
    WithJsonSchema({"anyOf": [_SECRET, {"type": "string", "pattern": r"^([Hh][Tt][Tt][Pp][Ss]?://|\$\{)"}]}),
]


class HttpChannelModel(Model):
    """One HTTP request per message."""

    method: Annotated[Method, Field(description="POST unless written.")] = "POST"
    url: Annotated[HttpAddress, Field(description="Where to; {env: NAME} or {file: PATH} if it holds a token.")]
    headers: Annotated[
        Headers, Field(description="Further headers; a value may be a secret: {env: NAME, prefix: 'Bearer '}.")
    ] = Field(default_factory=dict)
    body: Annotated[
        Body | None, Field(description="A Jinja2 template of the body; without it everything is sent as JSON.")
    ] = None


class ChannelModel(Model):
    """How people are told: by one of the services that apprise knows, or by an HTTP request."""

    url: Annotated[
        Address | None,
        Field(description="An address of apprise (wecombot://…, mailto://…), best as {env: NAME} or {file: PATH}."),
    ] = None
    http: Annotated[HttpChannelModel | None, Field(description="One HTTP request per message.")] = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.url is None) == (self.http is None):
            reason = "a channel has one way" if self.url is not None else "nothing says where to"
            refuse(reason, "write url: {env: NAME} (an address of apprise), or http: {url: …}")
        return self

    @property
    def kind(self) -> str:
        return "apprise" if self.http is None else "http"

    def options(self) -> dict[str, Json]:
        """What is sent with, secrets left out."""
        if self.http is None:
            return {} if isinstance(self.url, SecretModel) else {ADDRESS: self.url}
        made: dict[str, Json] = {"method": self.http.method}
        if isinstance(self.http.url, str):
            made[ADDRESS] = self.http.url
        made["headers"] = {name: one for name, one in self.http.headers.items() if isinstance(one, str)}
        if self.http.body is not None:
            made["body"] = self.http.body
        return made

    def secrets(self) -> dict[str, Secret]:
        """By the names of what they are part of: `url`, `headers.NAME`."""
        address = self.url if self.http is None else self.http.url
        found = {ADDRESS: address.noun()} if isinstance(address, SecretModel) else {}
        headers = {} if self.http is None else self.http.headers
        return found | {f"headers.{name}": one.noun() for name, one in headers.items() if isinstance(one, SecretModel)}

    def written(self) -> dict[str, Json]:
        """What may be shown: secrets as references; of an address that is written out, which may hold a token, only of
        what kind it is."""
        if self.http is None:
            assert self.url is not None
            if isinstance(self.url, SecretModel):
                return {ADDRESS: self.url.written()}
            return {ADDRESS: self.url.partition("://")[0] + _HIDDEN}
        http: dict[str, Json] = {"method": self.http.method, ADDRESS: _shown_url(self.http.url)}
        if self.http.headers:
            http["headers"] = written_headers(self.http.headers)
        if self.http.body is not None:
            http["body"] = self.http.body
        return {"http": http}


def _shown_url(url: str | SecretModel) -> Json:
    """Without user, password, path and query: webhooks have their token in the path."""
    if isinstance(url, SecretModel):
        return url.written()
    scheme, _, rest = url.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return f"{scheme}://{host}" + ("" if rest.rstrip("/") == host else "/***")


def _kinds(channel: str, value: object) -> tuple[str, ...]:
    if value is None:
        return USUAL
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed:
        refuse(f"the list of what `{channel}` is told of is empty", f"write some of {', '.join(KINDS)}")
    words = []
    for one in listed:
        word = to_text(one)
        if word not in KINDS:
            refuse(f"{shown(word)} is nothing that people are told of", did_you_mean(word, KINDS))
        words.append(word)
    return tuple(dict.fromkeys(words))


def _notify(value: object) -> dict[str, tuple[str, ...]]:
    if isinstance(value, dict):
        return {to_name(channel): _kinds(channel, kinds) for channel, kinds in value.items()}
    listed = value if isinstance(value, list | tuple) else [value]
    return {to_name(channel): USUAL for channel in listed}


_KINDS_SCHEMA = {"anyOf": [{"enum": [*KINDS]}, {"type": "array", "items": {"enum": [*KINDS]}, "minItems": 1}]}

Notify = Annotated[
    dict[str, tuple[str, ...]],
    PlainValidator(_notify),
    WithJsonSchema(
        {
            "anyOf": [
                NAME_SCHEMA,
                {"type": "array", "items": NAME_SCHEMA},
                {"type": "object", "propertyNames": NAME_SCHEMA, "additionalProperties": _KINDS_SCHEMA},
            ]
        }
    ),
]


def written_notify(notify: dict[str, tuple[str, ...]]) -> Json:
    """The shortest form that means the same."""
    if all(kinds == USUAL for kinds in notify.values()):
        return list(notify)
    return {channel: list(kinds) for channel, kinds in notify.items()}
