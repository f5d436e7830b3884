"""The keys below `with:`, taken from the fields of a compensator's dataclass, and reading what was written there."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import itertools
import types
import typing
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Literal, Union

from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Option:
    """`type` is one of `str int float bool timedelta tuple[str, ...] Mapping[str, str] Literal[…]`, or one of these
    `| None`; a timedelta is written as `90s`. `secret`: it, or each value of a mapping, may be `{env: …}` or
    `{file: …}`. `from_source`: where it is not written, the source's `event` field of this name is taken."""

    name: str
    type: Any
    required: bool
    default: Any
    secret: bool
    from_source: bool
    doc: str


@lru_cache(maxsize=256)
def options_of(kind: type[Any]) -> tuple[Option, ...]:
    """In the order of the fields; InvalidInput for a field of a type that cannot be written in jobs.yaml."""
    hints = typing.get_type_hints(kind)
    docs = docs_of(kind)
    secret, from_source = set(kind.secret_options), set(getattr(kind, "source_options", ()))
    found: list[Option] = []
    for one in dataclasses.fields(kind):
        if not one.init:
            continue
        required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        default: Any = None
        if not required:
            made = one.default_factory is not dataclasses.MISSING
            default = typing.cast(Any, one.default_factory)() if made else one.default
        _writable(hints[one.name], one.name)
        found.append(
            Option(
                one.name,
                hints[one.name],
                required and one.name not in from_source,
                default,
                one.name in secret,
                one.name in from_source,
                docs.get(one.name, ""),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Given:
    """`arguments` of the dataclass. `wrong`: for an option that there is not, one that is missing, and one whose value
    is of another type, an error that names it; `told` are the options about which they are: in place of those that must
    be given, `arguments` has something of their type, so that the others can be judged."""

    arguments: Mapping[str, Any]
    wrong: tuple[InvalidInput, ...] = ()
    told: frozenset[str] = frozenset()


def read(kind: type[Any], written: Mapping[str, Any], event: Mapping[str, str]) -> Given:
    """`event`: the source's event fields."""
    known = {one.name: one for one in options_of(typing.cast(Hashable, kind))}
    wrong: list[InvalidInput] = []
    meant: set[str] = set()
    for name in written:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            meant.update(set(close) - written.keys())
            hint = f"did you mean {close[0]}?" if close else f"there are {' '.join(known)}" if known else "remove it"
            wrong.append(InvalidInput(f"with.{name}: {kind.kind} has no such option", hint=hint))
    given: dict[str, Any] = {}
    for name, option in known.items():
        try:
            if name in written:
                given[name] = fit(option.type, written[name], f"with.{name}")
            elif option.from_source and event.get(name):
                given[name] = _of_source(name, event[name])
            elif name not in meant and (option.required or (option.from_source and option.default is None)):
                doc = f": {option.doc}" if option.doc else ""
                raise InvalidInput(f"with.{name}: {kind.kind} needs it", hint=f"write it{doc}")
        except InvalidInput as error:
            wrong.append(error)
            meant.add(name)
    required = {one.name for one in dataclasses.fields(kind) if one.init} & meant
    for name in required - given.keys():
        if known[name].required or known[name].default is None:
            given[name] = _something(known[name].type)
    return Given(given, tuple(wrong), frozenset(meant))


def _something(type_: Any) -> Any:
    """A value of this type."""
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (Union, types.UnionType):
        return None
    if origin is Literal:
        return arguments[0]
    if origin is not None:
        return () if origin is tuple else {}
    return {str: "x", int: 1, float: 1.0, bool: False, timedelta: timedelta(seconds=1)}[type_]


def fit(type_: Any, value: Any, place: str) -> Any:
    """The value as this type. Numbers and texts are not taken for each other, but a text option takes a number."""
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (Union, types.UnionType):
        return None if value is None else fit(_given(arguments), value, place)
    if origin is Literal:
        if value in arguments and not isinstance(value, bool):
            return value
        raise InvalidInput(f"{place}: {value!r} is not known", hint=f"write one of {' '.join(map(str, arguments))}")
    if origin is tuple:
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list | tuple):
            return tuple(fit(str, one, place) for one in value)
        raise _wrong(place, "a list of texts")
    if origin is not None:
        if isinstance(value, Mapping):
            return {str(name): fit(str, one, f"{place}.{name}") for name, one in value.items()}
        raise _wrong(place, "names with values")
    return _plain(type_, value, place)


def _plain(type_: Any, value: Any, place: str) -> Any:
    if type_ is timedelta:
        try:
            return value if isinstance(value, timedelta) else parse_duration(value)
        except InvalidInput as error:
            raise InvalidInput(f"{place}: {error.reason}", hint=error.hint) from None
    if type_ is bool and isinstance(value, bool):
        return value
    if not isinstance(value, bool):
        if type_ is str and isinstance(value, str | int | float):
            return str(value)
        if type_ is int and isinstance(value, int):
            return value
        if type_ is float and isinstance(value, int | float):
            return float(value)
    raise _wrong(place, _WORDS[type_])


_WORDS: Mapping[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    timedelta: "a duration: 90s, 15m, 2h",
}


def _wrong(place: str, what: str) -> InvalidInput:
    return InvalidInput(f"{place}: it is not {what}", hint=f"write {what}")


def _given(arguments: tuple[Any, ...]) -> Any:
    return next(one for one in arguments if one is not types.NoneType)


def _writable(type_: Any, name: str) -> None:
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (Union, types.UnionType):
        rest = [one for one in arguments if one is not types.NoneType]
        if len(rest) == 1:
            return _writable(rest[0], name)
    mapping = isinstance(origin, type) and issubclass(origin, Mapping) and arguments == (str, str)
    if not (mapping or type_ in _WORDS or origin is Literal or (origin is tuple and arguments == (str, ...))):
        raise InvalidInput(
            f"the field {name} has a type that jobs.yaml cannot hold: {type_}",
            hint="use str int float bool timedelta Literal[…] tuple[str, ...] Mapping[str, str], or one of them | None",
        )
    return None


def _of_source(name: str, place: str) -> str:
    if place.startswith("header:"):
        raise InvalidInput(
            f"with.{name}: the source reads it from a header, and a list has no headers",
            hint=f"write {name}: where it lies in an item of the list",
        )
    return place


def docs_of(kind: type[Any]) -> dict[str, str]:
    """The texts that stand below fields in the class's own source, by the field."""
    try:
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found: dict[str, str] = {}
    for one, after in itertools.pairwise(body):
        documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and documented:
            text = typing.cast(ast.Constant, typing.cast(ast.Expr, after).value).value
            if isinstance(text, str):
                found[one.target.id] = " ".join(text.split())
    return found
