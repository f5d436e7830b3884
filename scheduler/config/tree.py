"""One YAML file → plain values, with the place of every key and value kept for messages.

YAML without its traps: only `true` and `false` are booleans, numbers are decimal, dates and `1:30` are text, a
key is text and given once. Anchors, aliases and merge keys (`<<`) work, within bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from scheduler.config.problem import Path, Problem

MAX_DEPTH = 64
ALIAS_ALLOWANCE = 100_000  # nodes that aliases may add for free,
ALIAS_FACTOR = 20  # and further ones for each node that is really written

_STR, _INT, _FLOAT, _BOOL, _NULL, _MERGE = "str", "int", "float", "bool", "null", "merge"
_TEXT_TAGS = frozenset({_STR, "!", "tag:yaml.org,2002:str"})
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_REAL = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,2})?|[eE][-+]?[0-9]{1,2})")
_NOT_TEXT = frozenset("-0123456789tfnN~<")

Place = tuple[int, int]
"""Line and column, from 1."""


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
            return _STR
        if not value:
            return _NULL
        if value[0] not in _NOT_TEXT:
            return _STR
        if value in ("true", "false"):
            return _BOOL
        if value in ("~", "null", "Null", "NULL"):
            return _NULL
        if value == "<<":
            return _MERGE
        if _INTEGER.fullmatch(value):
            return _INT
        return _FLOAT if _REAL.fullmatch(value) else _STR


class Tree:
    """A parsed file. `data` is made of dict, list, str, int, Real, bool and None; it is shared where aliases share it,
    so nobody may change it. `problems` are what YAML allows and we do not."""

    def __init__(self, name: str, root: yaml.Node | None) -> None:
        self.name = name
        self.root = root
        self.problems: list[Problem] = []
        self._path: list[str | int] = []
        self._made: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()
        self._written = 0
        self._repeated = 0
        self._bounded = True
        self.data: Any = None if root is None else self._value(root)
        self._made.clear()

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where the value at `path` begins, or its key; of the nearest enclosing thing if there is none."""
        node, place = self.root, (1, 1)
        if node is not None:
            place = _start(node)
        for index, part in enumerate(path):
            found = _child(node, part)
            if found is None:
                return place
            key_node, node = found
            place = _start(key_node) if key and index == len(path) - 1 else _start(node)
            if _is_empty(node):
                place = _start(key_node)
        return place

    def unquoted(self, path: Path) -> tuple[str, int, int] | None:
        """The text of an unquoted scalar at `path`, and the line and column (from 0) where it begins; else None."""
        node = self.root
        for part in path:
            found = _child(node, part)
            if found is None:
                return None
            node = found[1]
        if isinstance(node, yaml.ScalarNode) and not node.style and node.tag == _STR:
            return node.value, node.start_mark.line, node.start_mark.column
        return None

    def _complain(self, node: yaml.Node, reason: str, hint: str) -> None:
        line, column = _start(node)
        self.problems.append(Problem(self.name, line, column, tuple(self._path), reason, hint))

    def _value(self, node: yaml.Node) -> Any:
        made = self._made.get(id(node))
        if made is not None:
            self._repeated += made[1]
            if self._bounded and self._repeated > ALIAS_ALLOWANCE + ALIAS_FACTOR * self._written:
                self._bounded = False
                self._complain(node, "aliases repeat too much of the file", "write the values out, or merge less")
            return made[0] if self._bounded else None
        if id(node) in self._open:
            self._complain(node, "this value contains itself through an alias", "remove the alias inside it")
            return None
        if len(self._path) > MAX_DEPTH:
            self._complain(node, f"nested more than {MAX_DEPTH} levels deep", "flatten it")
            return None
        self._open.add(id(node))
        before = self._written + self._repeated
        self._written += 1
        if isinstance(node, yaml.MappingNode):
            value: Any = self._mapping(node)
        elif isinstance(node, yaml.SequenceNode):
            value = self._sequence(node)
        else:
            value = self._scalar(node)
        self._open.discard(id(node))
        self._made[id(node)] = value, self._written + self._repeated - before
        return value

    def _scalar(self, node: yaml.Node) -> Any:
        tag, text = node.tag, node.value
        if tag in _TEXT_TAGS or tag == _MERGE:
            return text
        if tag == _INT:
            return int(text)
        if tag == _NULL:
            return None
        if tag == _BOOL:
            return text == "true"
        if tag == _FLOAT:
            real = Real(text)
            real.text = text
            return real
        self._complain(
            node, f"the tag `{_shown_tag(tag)}` is not supported", "remove it, or quote the text if ! belongs to it"
        )
        return text

    def _sequence(self, node: yaml.SequenceNode) -> list[Any]:
        if not node.tag.endswith(":seq"):
            self._complain(node, f"the tag `{_shown_tag(node.tag)}` is not supported", "remove it")
        values = []
        for index, item in enumerate(node.value):
            self._path.append(index)
            values.append(self._value(item))
            self._path.pop()
        return values

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        if not node.tag.endswith(":map"):
            self._complain(node, f"the tag `{_shown_tag(node.tag)}` is not supported", "remove it")
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, item in node.value:
            if key.tag == _MERGE:
                for values in reversed(self._merged(item)):
                    merged.update(values)
                continue
            if key.tag not in _TEXT_TAGS:
                shown = f"`{key.value[:40]}`" if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                self._complain(key, f"key {shown} is not text", "put it in quotes")
                continue
            name = key.value
            self._path.append(name)
            if name in lines:
                first = lines[name]
                self._complain(key, f"key `{name[:100]}` is given twice, first in line {first}", "keep one of the two")
            else:
                lines[name] = key.start_mark.line + 1
                own[name] = self._value(item)
            self._path.pop()
        return {**merged, **own} if merged else own

    def _merged(self, node: yaml.Node) -> list[dict[str, Any]]:
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self._value(item) for item in items]
        good = [value for value in values if isinstance(value, dict)]
        if len(good) < len(values):
            self._complain(node, "`<<` merges mappings only", "write `<<: *name` of an anchored mapping")
        return good


def _child(node: yaml.Node | None, part: str | int, depth: int = 0) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode):
        if isinstance(part, int) and part < len(node.value):
            return node.value[part], node.value[part]
        return None
    if not isinstance(node, yaml.MappingNode) or depth > MAX_DEPTH:
        return None
    for key, value in node.value:
        if key.tag in _TEXT_TAGS and key.value == part:
            return key, value
    for merged in _merges(node):
        found = _child(merged, part, depth + 1)
        if found is not None:
            return found
    return None


def _merges(node: yaml.MappingNode) -> Iterator[yaml.Node]:
    for key, value in node.value:
        if key.tag == _MERGE:
            yield from value.value if isinstance(value, yaml.SequenceNode) else (value,)


def _start(node: yaml.Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_empty(node: yaml.Node) -> bool:
    """An absent value has no place of its own: the parser names the next line."""
    return node.start_mark.index == node.end_mark.index


def _shown_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")[:60]
