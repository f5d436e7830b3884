"""One entry of `sources:`: a sender of webhooks."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationInfo, WithJsonSchema

from scheduler.config.fields import (
    Line,
    PositiveDuration,
    Size,
    Switch,
    Text,
    Url,
    Whole,
    Word,
    check_url,
    to_place,
)
from scheduler.config.headers import Headers
from scheduler.config.models.base import Model
from scheduler.config.models.place import EventPlace
from scheduler.config.models.queue import Rate
from scheduler.config.models.secret import SecretModel
from scheduler.config.refusal import refuse
from scheduler.config.template import check_template
from scheduler.core.source import FetchCurrent

LARGEST_BODY = 64 << 20
LONGEST_ANSWER = 64 << 10
_VALUES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


def _secrets(value: Any) -> Any:
    listed = [value] if isinstance(value, dict) else value
    if isinstance(listed, list) and not listed:
        refuse("the list of secrets is empty", "write the one that signs: [{env: NAME}]")
    return listed


def _max_body(value: int) -> int:
    if not 1 <= value <= LARGEST_BODY:
        refuse(f"{value} bytes is out of range", "write something from 1KiB to 64MiB")
    return value


def _answer(value: str) -> str:
    if len(value.encode("utf-8", "replace")) > LONGEST_ANSWER:
        refuse("the answer is longer than 64KiB", "write the few words that the provider demands")
    return value


def _content_type(value: str) -> str:
    if not re.fullmatch(r"[\w.+-]+/[\w.+-]+[ -~]*", value, re.ASCII):
        refuse(f"`{value[:60]}` is not a content type", "write one as text/plain; charset=utf-8")
    return value


def _template(value: object, info: ValidationInfo) -> str:
    text = to_place(value, info)
    check_template(text)
    check_url(_VALUES.sub("1", text))  # also where a port may stand
    return text


SecretList = Annotated[
    list[SecretModel],
    BeforeValidator(_secrets),
    WithJsonSchema(
        {
            "anyOf": [
                SecretModel.model_json_schema(),
                {"type": "array", "minItems": 1, "items": SecretModel.model_json_schema()},
            ]
        }
    ),
]
UrlTemplate = Annotated[
    str, PlainValidator(_template), WithJsonSchema({"type": "string", "pattern": r"^([Hh][Tt][Tt][Pp][Ss]?://|\$\{)"})
]


class SignatureModel(Model):
    """How requests are signed. The keys beside these are options of the scheme."""

    model_config = ConfigDict(extra="allow")

    scheme: Annotated[Line | None, Field(description="The way of signing; without it that of the preset.")] = None
    secrets: Annotated[
        SecretList | None, Field(description="Who signed: {env: NAME} or {file: PATH}, or a list of them.")
    ] = None


class EventModel(Model):
    """Where an event says what it is: JMESPath into its body, or header:NAME."""

    id: Annotated[EventPlace | None, Field(description="What tells it from every other event.")] = None
    type: Annotated[EventPlace | None, Field(description="What kind of event it is.")] = None
    occurred_at: Annotated[EventPlace | None, Field(description="When it happened, by the provider's clock.")] = None
    subject: Annotated[EventPlace | None, Field(description="What it is about: an order, a customer.")] = None


class ResponseModel(Model):
    """What the provider is answered when its event is stored."""

    status: Annotated[int | None, Whole(200, 299), Field(description="202, or that of the preset.")] = None
    body: Annotated[Text | None, AfterValidator(_answer), Field(description="Exactly this text; else our JSON.")] = None
    content_type: Annotated[
        Line | None, AfterValidator(_content_type), Field(description="Of that text: application/json unless written.")
    ] = None


class FetchCurrentModel(Model):
    """What is asked before a run of an event starts."""

    url: Annotated[UrlTemplate, Field(description="A template: https://api.example.com/orders/{{ event.subject }}.")]
    headers: Annotated[Headers, Field(description="Headers of the request; a value may be a secret.")] = Field(
        default_factory=dict
    )

    def noun(self) -> FetchCurrent:
        made = {name: one.noun() if isinstance(one, SecretModel) else one for name, one in self.headers.items()}
        return FetchCurrent(self.url, made)


class SourceModel(Model):
    """A sender of webhooks. What its preset says is the default of everything else."""

    preset: Annotated[Line | None, Field(description="What is known about this provider is the default.")] = None
    signature: Annotated[SignatureModel | None, Field(description="How its requests are signed.")] = None
    secrets: Annotated[
        SecretList | None,
        Field(description="Who signed: {env: NAME} or {file: PATH}, or a list while one is being replaced."),
    ] = None
    url: Annotated[
        Url | None, Field(description="The address as registered with the provider; Square and Twilio sign it.")
    ] = None
    trust: Annotated[
        str | None,
        Word("network"),
        Field(description="network: nothing is signed, and only the sender can reach the address."),
    ] = None
    tolerance: Annotated[
        PositiveDuration | None, Field(description="How far the signed time may be from ours, on either side.")
    ] = None
    event: Annotated[EventModel | None, Field(description="Where an event says what it is.")] = None
    keep: Annotated[PositiveDuration | None, Field(description="How long events and their ids are remembered.")] = None
    max_body: Annotated[Size, AfterValidator(_max_body), Field(description="Larger requests are refused (413).")] = (
        1 << 20
    )
    response: Annotated[ResponseModel | None, Field(description="What a provider demands as the answer.")] = None
    paused: Annotated[Switch, Field(description="Events are stored and answered, and their runs wait.")] = False
    rate: Annotated[Rate | None, Field(description="Requests beyond it are answered 429: 50/s, 600/m.")] = None
    burst: Annotated[
        int | None, Whole(1, 1_000_000), Field(description="How many may come at once after a quiet time.")
    ] = None
    fetch_current: Annotated[
        FetchCurrentModel | None, Field(description="The present state is asked for before each run.")
    ] = None


DEFAULT_TOLERANCE = timedelta(minutes=5)
DEFAULT_KEEP = timedelta(days=45)
