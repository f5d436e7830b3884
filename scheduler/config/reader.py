"""PyYAML's parser with YAML's traps taken out: only `true` and `false` are booleans, numbers are decimal, dates and
`1:30` are text."""

from __future__ import annotations

import re
from typing import Any

import yaml

STR, INT, FLOAT, BOOL, NULL, MERGE = "str", "int", "float", "bool", "null", "merge"
"""Tags of plain scalars."""
TEXT_TAGS = frozenset({STR, "!", "tag:yaml.org,2002:str"})

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_REAL = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,2})?|[eE][-+]?[0-9]{1,2})")
_NOT_TEXT = frozenset("-0123456789tfnN~<")


class Real(float):
    """A number with a point as it was written: `1.10` stays `1.10` where a text is wanted."""

    __slots__ = ("text",)
    text: str


class Reader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser with our idea of what a plain scalar is."""

    def resolve(self, kind: type, value: str, implicit: Any) -> str:
        if kind is not yaml.ScalarNode:
            return "tag:yaml.org,2002:seq" if kind is yaml.SequenceNode else "tag:yaml.org,2002:map"
        if not implicit[0]:
            return STR
        if not value:
            return NULL
        if value[0] not in _NOT_TEXT:
            return STR
        if value in ("true", "false"):
            return BOOL
        if value in ("~", "null", "Null", "NULL"):
            return NULL
        if value == "<<":
            return MERGE
        if _INTEGER.fullmatch(value):
            return INT
        return FLOAT if _REAL.fullmatch(value) else STR
