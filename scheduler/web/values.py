"""What a request says by name, in its query, in a header or in its body: what the document tells of it, and what is
taken. What is wrong is an InvalidInput that names it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

from scheduler.core.errors import InvalidInput
from scheduler.core.stamp import from_text
from scheduler.core.value_object import value_object

Schema = dict[str, Any]

LONGEST = 2_000
"""Characters of a text."""
ASCII = "^[!-~]([ -~]*[!-~])?$"
"""Printable ASCII, without blanks at the ends."""
INSTANT: Schema = {"type": "string", "format": "date-time", "examples": ["2026-03-08T07:00:00Z"]}


class Value(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str: ...

    @property
    def schema(self) -> Schema: ...


@value_object
class Named:
    """What every value has, wherever it stands."""

    name: str
    help: str


def number_of(value: Any, name: str, low: int, high: int) -> int:
    """Raises InvalidInput for everything but a whole number in `[low, high]`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(f"`{name}` must be a number from {low} to {high}")
    return value


def flag_of(value: Any, name: str) -> bool:
    """Raises InvalidInput for everything but true and false."""
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` must be true or false")
    return value


def instant_of(text: str, name: str) -> datetime:
    """Raises InvalidInput for what is no instant with its offset to UTC."""
    try:
        return from_text(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"`{name}` is no instant: {shown(text)}", hint="write 2026-03-08T07:00:00Z") from None


def shown(text: str) -> str:
    """The beginning of what somebody wrote, fit for a message."""
    return f"`{text[:60]}`" if text.isprintable() else ascii(text[:60])
