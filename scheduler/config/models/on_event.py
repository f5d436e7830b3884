"""`on_event`: which events of a source start a job, and in which order."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from scheduler.config.fields import Name, Word, to_line, to_texts
from scheduler.config.models.base import Model
from scheduler.config.models.place import to_event_place
from scheduler.config.refusal import refuse, shown, text_of
from scheduler.core.model import Json
from scheduler.core.source import OnDead, OnEvent, Order


def _types(value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and not value:
        refuse("the list of types is empty", 'write at least one: "payment.*", or remove the key: every type')
    listed = value if isinstance(value, list | tuple) else [value]
    for one in listed:
        if not isinstance(one, str) and text_of(one) is not None:
            refuse(f"{shown(one)} is a number, and types are texts", f'put it in quotes: "{text_of(one)}"')
    return tuple(to_line(one) for one in to_texts(value))


def _where(value: object) -> str:
    text = to_event_place(value)
    if text.startswith("header:"):
        refuse(f"{shown(text)} names a header", "write a condition on the body: status == 'failed'")
    return text


def expand(value: Any) -> Any:
    """The mapping form of what was written: a text is the name of the source."""
    return value if isinstance(value, dict | OnEventModel) else {"source": value}


Types = Annotated[
    tuple[str, ...],
    PlainValidator(_types),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Condition = Annotated[str, PlainValidator(_where), WithJsonSchema({"type": "string", "minLength": 1})]


class OnEventModel(Model):
    """One run per event of a source."""

    source: Annotated[Name, Field(description="The source, one of `sources`.")]
    types: Annotated[Types, Field(description='Types of events, as "payment.*"; without it every type.')] = ()
    where: Annotated[
        Condition | None, Field(description="A JMESPath condition on the body: data.status == 'failed'.")
    ] = None
    order: Annotated[
        str,
        Word(*Order),
        Field(description="subject: events of one subject one at a time, the oldest first; none (default)."),
    ] = Order.NONE.value
    on_dead: Annotated[
        str,
        Word(*OnDead),
        Field(description="With order: subject, after a run that gave up: go_on (default), or hold the subject."),
    ] = OnDead.GO_ON.value

    def noun(self) -> OnEvent:
        return OnEvent(self.source, self.types, self.where or "", Order(self.order), OnDead(self.on_dead))


def written(on_event: OnEvent) -> dict[str, Json]:
    """The shortest form in jobs.yaml that means the same."""
    made: dict[str, Json] = {"source": on_event.source}
    if on_event.types:
        made["types"] = list(on_event.types)
    if on_event.where:
        made["where"] = on_event.where
    if on_event.order is not Order.NONE:
        made["order"] = on_event.order.value
    if on_event.on_dead is not OnDead.GO_ON:
        made["on_dead"] = on_event.on_dead.value
    return made
