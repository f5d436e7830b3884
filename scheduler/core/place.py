"""Where a value lies in a webhook: a JMESPath expression into its body, or `header:NAME`.

The only user of jmespath.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions

from .errors import InvalidInput
from .model import Json
from .signature import Headers

_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_HEADER = re.compile(r"header:\s*([A-Za-z0-9!#$%&'*+.^_`|~-]+)", re.ASCII)
# What an expression raises on data that its author did not expect.
_UNEXPECTED = (JMESPathError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError)


class NotApplicable(Exception):
    """The expression cannot be evaluated on this document."""


@dataclass(frozen=True, slots=True)
class Place:
    """`headers`: names of which the first that is there counts; else the body is looked up, along `path` where the
    expression is nothing but names (nearly all are, and jmespath takes ten times as long), else by `compiled`."""

    text: str
    headers: tuple[str, ...] = ()
    compiled: Any = None
    path: tuple[str, ...] = ()

    @staticmethod
    def of(text: str) -> Place:
        """`header:NAME` (several with `||` between: the first that is there), or JMESPath. InvalidInput if it is
        neither, or calls a function that there is not."""
        if text.startswith("header:"):
            parts = [_HEADER.fullmatch(one.strip()) for one in text.split("||")]
            names = tuple(one[1] for one in parts if one is not None)
            if len(names) < len(parts):
                raise InvalidInput(f"{text[:80]!r} does not name a header", hint="write header:X-Event-Id")
            return Place(text, names)
        try:
            compiled: Any = jmespath.compile(text)
        except (JMESPathError, RecursionError) as error:
            reason = str(error).splitlines()[0][:200]
            raise InvalidInput(
                f"{text[:80]!r} is not JMESPath: {reason}", hint="write a path as data.object.id, or header:NAME"
            ) from None
        unknown = sorted(set(_functions(compiled.parsed)) - set(Functions.FUNCTION_TABLE))
        if unknown:
            known = ", ".join(sorted(Functions.FUNCTION_TABLE))
            raise InvalidInput(f"{text[:80]!r}: there is no function {unknown[0]}", hint=f"there are {known}")
        return Place(text, (), compiled, tuple(text.split(".")) if _PATH.fullmatch(text) else ())

    def find(self, document: Json, headers: Headers) -> Json:
        """The value, None if there is none. NotApplicable with a sentence for an expression that this document makes
        fail."""
        if self.path:
            value = document
            for name in self.path:
                value = value.get(name) if isinstance(value, dict) else None
            return value
        if self.compiled is None:
            found = (headers.get(one) for one in self.headers)
            return next((one for one in found if one), None)
        try:
            return self.compiled.search(document)
        except _UNEXPECTED as error:
            reason = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise NotApplicable(f"{self.text} cannot be evaluated: {reason}") from None


def _functions(node: Any) -> Iterator[str]:
    if node["type"] == "function_expression":
        yield node["value"]
    for child in node["children"]:
        if isinstance(child, dict) and "type" in child:
            yield from _functions(child)
