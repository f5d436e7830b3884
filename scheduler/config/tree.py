"""One YAML file → plain values, with the place of every key and value kept for messages.

YAML without its traps: only `true` and `false` are booleans, numbers are decimal, dates and `1:30` are text, a
key is text and given once. Anchors, aliases and merge keys (`<<`) work, within bounds.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from scheduler.config.places import Places, start_of
from scheduler.config.problem import Problem
from scheduler.config.reader import BOOL, FLOAT, INT, MERGE, NULL, TEXT_TAGS, Real

MAX_DEPTH = 64
ALIAS_ALLOWANCE = 100_000  # nodes that aliases may add for free,
ALIAS_FACTOR = 20  # and further ones for each node that is really written

_TAB = re.compile(r" *:[ \t]*\t[ \t]*")


class Tree:
    """A parsed file. `data` is made of dict, list, str, int, Real, bool and None; it is shared where aliases share it,
    so nobody may change it. `problems` are what YAML allows and we do not."""

    def __init__(self, name: str, root: yaml.Node | None, text: str = "") -> None:
        self.name = name
        self.places = Places(root, text)
        self.problems: list[Problem] = []
        self._text = text if "\t" in text else ""
        self._path: list[str | int] = []
        self._made: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()
        self._written = 0
        self._repeated = 0
        self._bounded = True
        self.data: Any = None if root is None else self._value(root)
        self._made.clear()

    def _complain(self, node: yaml.Node, reason: str, hint: str) -> None:
        line, column = start_of(node)
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
        if tag in TEXT_TAGS or tag == MERGE:
            return text
        if tag == INT:
            return int(text)
        if tag == NULL:
            return None
        if tag == BOOL:
            return text == "true"
        if tag == FLOAT:
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
            if key.tag == MERGE:
                for values in reversed(self._merged(item)):
                    merged.update(values)
                continue
            if key.tag not in TEXT_TAGS:
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
                if self._text and _TAB.fullmatch(self._text[key.end_mark.index : item.start_mark.index]):
                    self._complain(item, "a tab between a key and its value", "write a space instead")
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


def _shown_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")[:60]
