"""How a value is refused: what validators raise, and how values are quoted in what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from pydantic_core import PydanticCustomError

from scheduler.config.reader import Real


def refuse(reason: str, hint: str | None = None) -> NoReturn:
    """What a validator raises: the reason, and what to write instead."""
    raise PydanticCustomError("refused", "{reason}", {"reason": reason, "hint": hint})


def shown(value: object) -> str:
    """A value as it is quoted in messages: short, whatever it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value.text if isinstance(value, Real) else value)
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}…`"


def text_of(value: object) -> str | None:
    """The text that was written, for texts and numbers; None for everything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, Real):
        return value.text
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None
