"""Where in a file a key or a value was written."""

from __future__ import annotations

import re
from functools import cached_property

import yaml

from scheduler.config.problem import Path
from scheduler.config.reader import MERGE, STR, TEXT_TAGS
from scheduler.config.text import lines_of

_COMMENT = re.compile(r"\s+#")

Place = tuple[int, int]
"""Line and column, from 1."""

Found = tuple[yaml.Node, yaml.Node]
"""The nodes of a key and of its value; of an item of a list the same twice."""


class Places:
    """Looks up paths in the nodes of a file; merge keys are followed to where a value is really written."""

    def __init__(self, root: yaml.Node | None, text: str) -> None:
        self._root = root
        self._text = text
        self._children: dict[int, dict[str, Found]] = {}

    def of(self, path: Path, *, key: bool = False) -> Place:
        """Where the value at `path` begins, or its key; of the nearest enclosing thing if there is none."""
        node = self._root
        place = (1, 1) if node is None else start_of(node)
        for index, part in enumerate(path):
            found = self._child(node, part)
            if found is None:
                return place
            key_node, node = found
            at_key = (key and index == len(path) - 1) or _is_empty(node)
            place = start_of(key_node if at_key else node)
        return place

    def comment_behind(self, path: Path) -> bool:
        """Whether a comment follows an unquoted scalar at `path` in its line."""
        node = self._root
        for part in path:
            found = self._child(node, part)
            if found is None:
                return False
            node = found[1]
        if not isinstance(node, yaml.ScalarNode) or node.style or node.tag != STR:
            return False
        end = node.start_mark.column + len(node.value)
        return _COMMENT.match(self._lines[node.start_mark.line][end:]) is not None

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self._text)

    def _child(self, node: yaml.Node | None, part: str | int) -> Found | None:
        if isinstance(node, yaml.SequenceNode):
            return (node.value[part],) * 2 if isinstance(part, int) and part < len(node.value) else None
        if not isinstance(node, yaml.MappingNode) or not isinstance(part, str):
            return None
        return self._children_of(node).get(part)

    def _children_of(self, node: yaml.MappingNode) -> dict[str, Found]:
        known = self._children.get(id(node))
        if known is not None:
            return known
        self._children[id(node)] = {}  # what a mapping finds of itself, should it be merged into itself
        merged: dict[str, Found] = {}
        own: dict[str, Found] = {}
        for key, value in node.value:
            if key.tag == MERGE:
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for source in reversed(sources):
                    if isinstance(source, yaml.MappingNode):
                        merged.update(self._children_of(source))
            elif key.tag in TEXT_TAGS:
                own.setdefault(key.value, (key, value))
        found = {**merged, **own}
        self._children[id(node)] = found
        return found


def start_of(node: yaml.Node) -> Place:
    """Where a node begins."""
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_empty(node: yaml.Node) -> bool:
    """An absent value has no place of its own: the parser names the next line."""
    return node.start_mark.index == node.end_mark.index
