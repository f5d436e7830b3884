"""Labelled lines, as `describe` shows them, and values as a file could have them."""

from __future__ import annotations

from typing import Any

from scheduler.cli.surface import Surface
from scheduler.cli.text import broken, clip, plain, visible, width

LABEL = 14
"""Columns of the labels on the left."""
SHOWN = 8
"""Entries of a value that are shown where it is not shown in full."""
LONG = 200
"""Columns of one of them where no terminal limits them."""


def line(surface: Surface, label: str, text: str, size: int = LABEL, word: str = "") -> None:
    """A labelled line, folded at the terminal's width; further lines of `text` begin below its first. `word` is the
    state that colours the text."""
    total = surface.columns
    lines = visible(surface.pasted(text)).split("\n")
    if total is not None:
        lines = [folded for one in lines for folded in broken(one, max(20, total - size))]
    for index, one in enumerate(lines):
        surface.out(((label if index == 0 else "").ljust(size) + surface.style(word, one)).rstrip())


def written(value: Any) -> str:
    """A value of a definition on one line, as jobs.yaml could have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ({}, [], ""):
        return "-"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(one) for one in value) + "]"
    return str(value)


def digest(surface: Surface, value: Any) -> None:
    """The first entries of a value, one line each, cut where they are long; how many there are where there are more."""
    entries = list(value.items()) if isinstance(value, dict) else [("", value)]
    size = min(max(width(plain(str(key))) for key, _ in entries[:SHOWN]), 30) + 2 if entries else 0
    for key, one in entries[:SHOWN]:
        count = f"  ({len(one)} in all)" if isinstance(one, dict | list) and len(one) > 1 else ""
        room = (surface.columns or LONG) - size - 2 - width(count)
        text = plain(written(one))
        shown = clip(text, max(20, room)) + count if width(text) > room else text
        surface.out(f"  {clip(plain(str(key)), 30).ljust(size) if key else ''}{shown}")
    if len(entries) > SHOWN:
        surface.out(f"  … {len(entries) - SHOWN} more")
