"""Which types of events are meant: `payment.failed`, `payment.*`, `*`."""

from __future__ import annotations

from collections.abc import Sequence


def type_matches(globs: Sequence[str], type_: str) -> bool:
    """Whether one of the globs is this type; without globs every type is meant. `*` stands for any characters, also
    none, also dots; everything else stands for itself, in its case."""
    return not globs or any(_matches(one, type_) for one in globs)


def _matches(glob: str, text: str) -> bool:
    # Each part is taken where it first fits: linear, whatever a stranger's text is.
    head, *rest = glob.split("*")
    if not rest:
        return glob == text
    *middle, tail = rest
    if not text.startswith(head) or len(text) < len(head) + len(tail):
        return False
    position, end = len(head), len(text) - len(tail)
    for part in middle:
        position = text.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return text.endswith(tail)
