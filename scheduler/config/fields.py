"""The kinds of values that keys of jobs.yaml have, as pydantic types that complain in plain words.

A type takes what the YAML reader made, normalises it, and knows its JSON Schema. Whoever adds an action kind
builds its options from these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from scheduler.config.interpolation import check_variable, interpolation_of
from scheduler.config.refusal import refuse, shown, text_of
from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput
from scheduler.core.value_object import value_object

NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_NAME = re.compile(NAME_PATTERN)
_SIZE = re.compile(r"([0-9]{1,15})\s*(B|[kK]i?B?|[MGT]i?B?)")
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_LONGEST_TEXT = 1 << 20
_LARGEST = 1 << 60


def to_text(value: object) -> str:
    """Any text; numbers keep their spelling. No NUL, which no command or file name can hold."""
    text = text_of(value)
    if text is None:
        refuse(f"{shown(value)} is not a text", "put it in quotes" if isinstance(value, bool) else "write a text")
    if "\0" in text:
        refuse("a NUL character is not allowed here", "remove it")
    if len(text) > _LONGEST_TEXT:
        refuse("longer than a million characters", "keep large texts in a file")
    return text


def to_line(value: object) -> str:
    """A text that is not empty and has no line break."""
    text = to_text(value)
    if not text.strip():
        refuse("must not be empty", "write a text, or remove the key")
    if "\n" in text or "\r" in text:
        refuse("must be one line", "remove the line break")
    return text


def to_name(value: object) -> str:
    """A name of a job, queue or lock."""
    text = to_text(value)
    if not _NAME.fullmatch(text):
        refuse(f"{shown(text)} is not a good name", NAME_RULE)
    return text


NAME_RULE = "use letters, digits and . _ - only, beginning with a letter or digit, at most 100 characters"


@lru_cache(maxsize=4096)
def _duration(text: str) -> timedelta:
    return parse_duration(text)


def to_duration(value: object) -> timedelta:
    """A number and a unit."""
    if not isinstance(value, str):
        text = text_of(value)
        if text is None or "e" in text.casefold():
            refuse(f"{shown(value)} is not a duration", "write a number and a unit: 90s, 15m, 1h30m, 2d")
        refuse(f"{shown(value)} has no unit", f"write {text}s, {text}m or {text}h, as it is meant")
    try:
        return _duration(value)
    except InvalidInput as error:
        refuse(error.reason, error.hint)


def to_positive_duration(value: object) -> timedelta:
    """A duration longer than nothing."""
    duration = to_duration(value)
    if not duration:
        refuse("must be longer than nothing", "write at least 1s")
    return duration


def to_size(value: object) -> int:
    """Bytes, from `64KiB`, `10M` (powers of 1024) or `10MB` (powers of 1000)."""
    text = text_of(value)
    if text is None or not isinstance(value, str):
        refuse(f"{shown(value)} is not a size", "write a number and a unit: 64KiB, 1MiB, 2GiB")
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        refuse(f"{shown(value)} is not a size", "write a number and a unit: 64KiB, 1MiB, 2GiB")
    unit = found[2]
    base = 1000 if len(unit) == 2 and unit[1] == "B" else 1024
    size: int = int(found[1]) * base ** _POWERS[unit[0].upper()]
    if size > _LARGEST:
        refuse(f"{shown(value)} is larger than any machine", "write a smaller size")
    return size


@value_object
class Whole:
    """Annotates a whole number within bounds."""

    low: int
    high: int

    def check(self, value: object) -> int:
        hint = f"write a number from {self.low} to {self.high}"
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(f"{shown(value)} is not a whole number", f"{hint}, without quotes")
        if not self.low <= value <= self.high:
            refuse(f"{value} is out of range", hint)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class Word:
    """Annotates a text that is one of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def check(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            choices = f"{', '.join(self.words[:-1])} or {self.words[-1]}"
            refuse(f"{shown(value)} is not one of the choices", f"write {choices}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"enum": list(self.words)}


def to_switch(value: object) -> bool:
    """true or false, and nothing that only looks like it."""
    if not isinstance(value, bool):
        refuse(f"{shown(value)} is neither true nor false", "write true or false, without quotes")
    return value


def to_texts(value: object) -> tuple[str, ...]:
    """A list of texts; one text is a list of one."""
    if isinstance(value, list | tuple):
        return tuple(to_text(one) for one in value)
    return (to_text(value),)


def to_variables(value: object) -> object:
    """Names of environment variables and what they are, each judged by itself."""
    if not isinstance(value, Mapping):
        refuse(f"{shown(value)} is not a mapping", "write one `NAME: value` per line below it")
    return value


def to_variable(name: str) -> str:
    check_variable(name)
    return name


def to_value(value: object) -> str:
    """The value of an environment variable; numbers and booleans as they were written."""
    if value is None:
        refuse("it has no value", 'write "" for an empty one, or remove it')
    text = ("true" if value else "false") if isinstance(value, bool) else text_of(value)
    if text is None:
        if isinstance(value, Mapping) and value.keys() & {"env", "file"}:
            refuse("a reference to a secret is not read in `env`", "move it below `secrets`, which are variables too")
        refuse("the value is not a text", "write a text or a number")
    if "\0" in text:
        refuse("a NUL character is not allowed in it", "remove it")
    return text


def to_place(value: object, info: ValidationInfo) -> str:
    """One line in which `${NAME}` is replaced."""
    return to_line(interpolation_of(info).fill(to_line(value)))


def to_arguments(value: object, info: ValidationInfo) -> dict[str, Any]:
    """A mapping of JSON values in whose texts `${NAME}` is replaced."""
    if not isinstance(value, Mapping):
        refuse(f"{shown(value)} is not a mapping", "write one `name: value` per line below it")
    filled = interpolation_of(info).fill_all(value)
    return dict(filled)


def check_url(text: str) -> str:
    """The text, if it is http or https in full."""
    if not re.match(r"https?://[^\s/?#]", text, re.IGNORECASE) or re.search(r"\s", text):
        refuse(f"{shown(text)} is not a URL", "write it in full, beginning with http:// or https://")
    try:
        _ = urlsplit(text).port
    except ValueError:
        refuse(
            f"the server and port of {shown(text)} are not understood",
            "a port is a number from 0 to 65535; an IPv6 address stands in brackets: http://[::1]:8080/",
        )
    return text


def to_url(value: object, info: ValidationInfo) -> str:
    """http or https, with `${NAME}` replaced."""
    return check_url(to_place(value, info))


_TEXT = {"type": "string"}
_LINE = {"type": "string", "minLength": 1}
_LOOSE = {"type": ["string", "number"]}
DURATION_SCHEMA = {
    "type": "string",
    "pattern": r"^([0-9]+(\.[0-9]+)?(w|d|h|ms|m|s))+$",
    "examples": ["90s", "15m", "1h30m"],
}
SIZE_SCHEMA = {"type": "string", "pattern": r"^[0-9]+ *(B|[kKMGT](i?B)?)$", "examples": ["64KiB", "1MiB", "2GiB"]}
NAME_SCHEMA = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
_VALUES = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}

Text = Annotated[str, PlainValidator(to_text), WithJsonSchema(_LOOSE)]
Line = Annotated[str, PlainValidator(to_line), WithJsonSchema(_LOOSE)]
Name = Annotated[str, PlainValidator(to_name), WithJsonSchema(NAME_SCHEMA)]
Place = Annotated[str, PlainValidator(to_place), WithJsonSchema(_LINE)]
Url = Annotated[
    str, PlainValidator(to_url), WithJsonSchema({"type": "string", "pattern": r"^([Hh][Tt][Tt][Pp][Ss]?://|\$\{)"})
]
Arguments = Annotated[dict[str, Any], PlainValidator(to_arguments), WithJsonSchema({"type": "object"})]
Duration = Annotated[timedelta, PlainValidator(to_duration), WithJsonSchema(DURATION_SCHEMA)]
PositiveDuration = Annotated[timedelta, PlainValidator(to_positive_duration), WithJsonSchema(DURATION_SCHEMA)]
Size = Annotated[int, PlainValidator(to_size), WithJsonSchema(SIZE_SCHEMA)]
Switch = Annotated[bool, PlainValidator(to_switch), WithJsonSchema({"type": "boolean"})]
Texts = Annotated[
    tuple[str, ...],
    PlainValidator(to_texts),
    WithJsonSchema({"anyOf": [_LOOSE, {"type": "array", "items": _LOOSE}]}),
]
Variable = Annotated[str, PlainValidator(to_variable)]
Environment = Annotated[
    dict[Variable, Annotated[str, PlainValidator(to_value)]], BeforeValidator(to_variables), WithJsonSchema(_VALUES)
]
