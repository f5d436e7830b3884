"""Where a value lies in an event, as it is written: JMESPath into the body, or `header:NAME`."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from scheduler.config.fields import to_line
from scheduler.config.refusal import refuse
from scheduler.core.errors import InvalidInput
from scheduler.core.place import Place


def to_event_place(value: object) -> str:
    """One line that can be looked up in an event."""
    text = to_line(value)
    try:
        Place.of(text)
    except InvalidInput as error:
        refuse(error.reason, error.hint)
    return text


EventPlace = Annotated[str, PlainValidator(to_event_place), WithJsonSchema({"type": "string", "minLength": 1})]
