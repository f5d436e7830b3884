"""Parameters of a request, in its query or its headers: read and described in one place. What is wrong is a 422."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from starlette.requests import Request

from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import from_text

Schema = dict[str, Any]

LONGEST = 2_000
"""Characters of a text in a query."""
LONGEST_LIST = 100_000
ASCII = "^[!-~]([ -~]*[!-~])?$"
"""Printable ASCII, without blanks at the ends."""
INSTANT: Schema = {"type": "string", "format": "date-time", "examples": ["2026-03-08T07:00:00Z"]}


class Parameter(Protocol):
    """What the OpenAPI document says about it."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str: ...

    @property
    def schema(self) -> Schema: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Empty if it is not given. `pattern` tells others what is taken; whoever uses the text checks it."""

    name: str
    help: str
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


@dataclass(frozen=True, slots=True)
class Words:
    """All values of a repeatable, comma-separated parameter; `of`: the ones there are, `fold`: in any case."""

    name: str
    help: str
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


@dataclass(frozen=True, slots=True)
class Number:
    name: str
    help: str
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
        if not (text.isascii() and text.isdigit() and len(text) <= 18) or not self.low <= int(text) <= self.high:
            raise InvalidInput(f"`{self.name}` must be a number from {self.low} to {self.high}")
        return int(text)


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    help: str
    default: bool = False

    @property
    def schema(self) -> Schema:
        return {"type": "boolean", "default": self.default}

    def read(self, request: Request) -> bool:
        text = request.query_params.get(self.name)
        if text is None:
            return self.default
        if text not in ("true", "false"):
            raise InvalidInput(f"`{self.name}` must be true or false")
        return text == "true"


@dataclass(frozen=True, slots=True)
class Instant:
    """None if it is not given."""

    name: str
    help: str

    @property
    def schema(self) -> Schema:
        return INSTANT

    def read(self, request: Request) -> datetime | None:
        text = request.query_params.get(self.name)
        return None if text is None else instant_of(text, self.name)


@dataclass(frozen=True, slots=True)
class Header:
    """A header of at most `limit` printable characters; None if it is not given."""

    name: str
    help: str
    limit: int = 255

    @property
    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": self.limit, "pattern": ASCII}

    def read(self, request: Request) -> str | None:
        text = request.headers.get(self.name)
        if text is not None and not (len(text) <= self.limit and re.fullmatch(ASCII, text)):
            raise InvalidInput(f"`{self.name}` must have 1 to {self.limit} printable ASCII characters")
        return text


def instant_of(text: str, name: str) -> datetime:
    """Raises InvalidInput."""
    try:
        return from_text(text).astimezone(UTC)
    except (ValueError, OverflowError):
        shown = ascii(text[:60]) if not text.isprintable() else f"`{text[:60]}`"
        raise InvalidInput(f"`{name}` is no instant: {shown}", hint="write 2026-03-08T07:00:00Z") from None
