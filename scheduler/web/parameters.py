"""Parameters of a request, in its query or its headers: read and described in one place. What is wrong is a 422."""

from __future__ import annotations

import re
from datetime import datetime

from starlette.requests import Request

from scheduler.core.errors import InvalidInput
from scheduler.core.value_object import value_object
from scheduler.web.values import ASCII, INSTANT, LONGEST, Named, Schema, flag_of, instant_of, number_of

LONGEST_LIST = 100_000


@value_object
class Text(Named):
    """Empty if it is not given. `pattern` tells others what is taken; whoever uses the text checks it."""

    pattern: str | None = None

    @property
    def schema(self) -> Schema:
        shape = {} if self.pattern is None else {"pattern": f"^({self.pattern})?$"}
        return {"type": "string", "maxLength": LONGEST, **shape}

    def read(self, request: Request) -> str:
        value = request.query_params.get(self.name, "")
        if len(value) > LONGEST:
            raise InvalidInput(f"`{self.name}` has {len(value)} characters, at most {LONGEST} are read")
        return value.replace("\x00", "\ufffd")  # No database takes it, and nothing has it in its name.


@value_object
class Words(Named):
    """All values of a repeatable, comma-separated parameter; `of`: the ones there are, `fold`: in any case."""

    of: tuple[str, ...] = ()
    fold: bool = False

    @property
    def schema(self) -> Schema:
        return {"type": "array", "items": {"type": "string", "enum": [*self.of, ""]} if self.of else {"type": "string"}}

    def read(self, request: Request) -> tuple[str, ...]:
        values = request.query_params.getlist(self.name)
        if sum(map(len, values)) > LONGEST_LIST:
            raise InvalidInput(f"`{self.name}` is too long", hint=f"at most {LONGEST_LIST} characters are read")
        words = tuple(part.strip().replace("\x00", "\ufffd") for value in values for part in value.split(","))
        words = tuple(word.upper() if self.fold else word for word in words if word)
        for word in words:
            if self.of and word not in self.of:
                raise InvalidInput(
                    f"`{self.name}` has no value `{ascii(word[:40])[1:-1]}`", hint=f"one of {', '.join(self.of)}"
                )
        return words


@value_object
class Number(Named):
    default: int
    low: int
    high: int

    @property
    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high, "default": self.default}

    def read(self, request: Request) -> int:
        text = request.query_params.get(self.name)
        if text is None:
            return self.default
        plain = text.isascii() and text.isdigit() and len(text) <= 18
        return number_of(int(text) if plain else text, self.name, self.low, self.high)


@value_object
class Flag(Named):
    default: bool = False

    @property
    def schema(self) -> Schema:
        return {"type": "boolean", "default": self.default}

    def read(self, request: Request) -> bool:
        text = request.query_params.get(self.name)
        if text is None:
            return self.default
        return flag_of({"true": True, "false": False}.get(text), self.name)


@value_object
class Instant(Named):
    """None if it is not given."""

    @property
    def schema(self) -> Schema:
        return INSTANT

    def read(self, request: Request) -> datetime | None:
        text = request.query_params.get(self.name)
        return None if text is None else instant_of(text, self.name)


@value_object
class Header(Named):
    """A header of at most `limit` printable characters; None if it is not given."""

    limit: int = 255

    @property
    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": self.limit, "pattern": ASCII}

    def read(self, request: Request) -> str | None:
        text = request.headers.get(self.name)
        if text is not None and not (len(text) <= self.limit and re.fullmatch(ASCII, text)):
            raise InvalidInput(f"`{self.name}` must have 1 to {self.limit} printable ASCII characters")
        return text
