"""The text that Prometheus reads (format 0.0.4), written directly: with tens of thousands of series the objects of a
client library cost ten times as much as the text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

LONGEST = 200
"""Characters of a label value that are shown."""


def clean(text: str) -> str:
    """A label value that the page can carry, whatever it was."""
    return text.encode("utf-8", "replace").decode("utf-8")[:LONGEST]


@lru_cache(maxsize=4096)
def quoted(text: str) -> str:
    """A label value between its quotes."""
    return '"' + clean(text).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") + '"'


def family(name: str, kind: str, help_text: str, lines: Iterable[str]) -> str:
    """One metric whole: all its lines must stand together. `help_text` is one line of ours."""
    return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n" + "".join(lines)
