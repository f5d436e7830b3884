"""Fields of a JSON body: read and described in one place. What is wrong is a 422 that names the field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Protocol

from anyio import to_thread
from starlette.requests import Request

from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput
from scheduler.core.value_object import value_object
from scheduler.web.answers import Malformed
from scheduler.web.inputs import BODY_LIMIT, parse_json, plain_name, read_body
from scheduler.web.values import ASCII, INSTANT, LONGEST, Named, Schema, Value, flag_of, instant_of, number_of, shown

MOST_NAMES = 10_000
LARGE = 64 << 10


class Field(Value, Protocol):
    @property
    def required(self) -> bool: ...

    def read(self, value: Any) -> Any:
        """The value as the code wants it; None is what an absent or null field has. Raises InvalidInput."""
        ...


@value_object
class Text(Named):
    """Empty if it is absent. `of`: the words there are. `ascii`: printable ASCII without blanks around it."""

    limit: int = LONGEST
    of: tuple[str, ...] = ()
    required: bool = False
    ascii: bool = False

    @property
    def schema(self) -> Schema:
        if self.of:
            return {"enum": list(self.of) if self.required else [*self.of, None]}
        kind: Any = "string" if self.required else ["string", "null"]
        least = {"minLength": 1} if self.required else {}
        return {"type": kind, "maxLength": self.limit, **least, **({"pattern": ASCII} if self.ascii else {})}

    def read(self, value: Any) -> str:
        if value is None and not self.required:
            return ""
        if not isinstance(value, str) or (self.required and not value):
            raise InvalidInput(f"`{self.name}` must be text")
        if len(value) > self.limit:
            raise InvalidInput(
                f"`{self.name}` has {len(value)} characters, at most {self.limit} are kept", hint="shorten it"
            )
        if self.ascii and not re.fullmatch(ASCII, value):
            raise InvalidInput(f"`{self.name}` must be printable ASCII characters")
        if self.of and value not in self.of:
            raise InvalidInput(f"`{self.name}` must be {', '.join(self.of[:-1])} or {self.of[-1]}")
        return value


@value_object
class Flag(Named):
    required: bool = False

    @property
    def schema(self) -> Schema:
        return {"type": ["boolean", "null"], "default": False}

    def read(self, value: Any) -> bool:
        return value is not None and flag_of(value, self.name)


@value_object
class Number(Named):
    default: int
    low: int
    high: int
    required: bool = False

    @property
    def schema(self) -> Schema:
        return {"type": ["integer", "null"], "minimum": self.low, "maximum": self.high, "default": self.default}

    def read(self, value: Any) -> int:
        if value is None:
            return self.default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return number_of(value, self.name, self.low, self.high)


@value_object
class Instant(Named):
    """None if it is absent."""

    required: bool = False

    @property
    def schema(self) -> Schema:
        return INSTANT if self.required else {"anyOf": [INSTANT, {"type": "null"}]}

    def read(self, value: Any) -> datetime | None:
        if value is None and not self.required:
            return None
        if not isinstance(value, str):
            raise InvalidInput(f"`{self.name}` must be an instant", hint="write 2026-03-08T07:00:00Z")
        return instant_of(value, self.name)


@value_object
class Duration(Named):
    """A timedelta, None if it is absent."""

    required: bool = False

    @property
    def schema(self) -> Schema:
        return {"type": ["string", "null"], "examples": ["90d", "1h30m"]}

    def read(self, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidInput(f"`{self.name}` must be a duration", hint="write 90d or 1h30m")
        return parse_duration(value)


@value_object
class Names(Named):
    """A list of at least one name; empty if it is absent."""

    required: bool = True
    most: int = MOST_NAMES

    @property
    def schema(self) -> Schema:
        kind: Any = "array" if self.required else ["array", "null"]
        return {"type": kind, "items": {"type": "string"}, "minItems": 1, "maxItems": self.most}

    def read(self, value: Any) -> list[str]:
        if value is None and not self.required:
            return []
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            raise InvalidInput(f"`{self.name}` must be a list of names", hint=f'write {{"{self.name}": ["a", "b"]}}')
        if len(value) > self.most:
            raise InvalidInput(f"`{self.name}` has {len(value)} entries, at most {self.most} are taken at once")
        return [plain_name(one) for one in value]


@value_object
class Anything(Named):
    """Any JSON."""

    required: bool = False

    @property
    def schema(self) -> Schema:
        return {}

    def read(self, value: Any) -> Any:
        return value


@value_object
class Items(Named):
    """A list of 1 to `most` objects with these fields; None if it is absent."""

    fields: Sequence[Field]
    most: int
    required: bool = False

    @property
    def schema(self) -> Schema:
        items = {"items": object_schema(self.fields), "minItems": 1, "maxItems": self.most}
        return {"type": ["array", "null"], **items}

    def read(self, value: Any) -> list[dict[str, Any]] | None:
        if value is None:
            return None
        if not isinstance(value, list) or not 0 < len(value) <= self.most:
            raise InvalidInput(f"`{self.name}` must be a list of 1 to {self.most} objects")
        read = []
        for number, one in enumerate(value):
            try:
                read.append(read_fields(one, self.fields))
            except (InvalidInput, Malformed) as error:
                raise InvalidInput(f"`{self.name}[{number}]`: {error.reason}", hint=error.hint) from None
        return read


@value_object
class Body:
    """An object with these fields and no others; where none is required the body may be left out. `media`: how it is
    written."""

    fields: Sequence[Field]
    limit: int = BODY_LIMIT
    media: str = "application/json"

    @property
    def schema(self) -> Schema:
        return object_schema(self.fields)

    @property
    def required(self) -> bool:
        return any(field.required for field in self.fields)

    async def read(self, request: Request) -> dict[str, Any]:
        """By name, every field. Raises Malformed (400, 413, 415) or InvalidInput (422)."""
        raw = await read_body(request, self.limit)
        if not raw:
            return read_fields({}, self.fields)
        # A large one takes its time, which others must not wait for.
        value = parse_json(raw) if len(raw) <= LARGE else await to_thread.run_sync(parse_json, raw)
        return read_fields(value, self.fields)


def object_schema(fields: Sequence[Field]) -> Schema:
    shown: Schema = {
        "type": "object",
        "properties": {field.name: field.schema | {"description": field.help} for field in fields},
        "additionalProperties": False,
    }
    required = [field.name for field in fields if field.required]
    return shown | ({"required": required} if required else {})


def read_fields(value: Any, fields: Sequence[Field]) -> dict[str, Any]:
    """Of a JSON object. Raises Malformed or InvalidInput."""
    if not isinstance(value, dict):
        raise Malformed("the body must be a JSON object", hint='write {"reason": "…"}')
    known = {field.name: field for field in fields}
    unknown = sorted(set(value) - set(known))
    if unknown:
        raise InvalidInput(
            f"unknown {'fields' if len(unknown) > 1 else 'field'} {', '.join(map(shown, unknown))}",
            hint=_meant(unknown, known),
        )
    return {name: field.read(value.get(name)) for name, field in known.items()}


def _meant(unknown: list[str], fields: Any) -> str:
    close = get_close_matches(unknown[0], fields, 1)
    known = f"known are {', '.join(sorted(fields))}" if fields else "this request takes no fields"
    return f"did you mean `{close[0]}`? {known}" if close else known
