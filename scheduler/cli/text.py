"""Widths and wrapping of text as a terminal shows it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from unicodedata import category, combining, east_asian_width

from scheduler.core.counted import counted as counted


def width(text: str) -> int:
    """Columns that `text` takes: wide (CJK) characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def command_line(*arguments: str) -> str:
    """`schedctl` with these arguments, quoted for a shell."""
    return shlex.join(["schedctl", *arguments])


def clip(text: str, columns: int) -> str:
    """`text` in at most so many columns, with `…` where something was cut."""
    if width(text) <= columns:
        return text
    taken, used = [], 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        taken.append(character)
    return "".join(taken) + "…" if columns > 0 else ""


def broken(text: str, columns: int) -> list[str]:
    """`text` in lines of at most `columns` (at least 2), broken between words where that is possible, else inside
    them; nothing is left out but the blanks at which it is broken."""
    lines = [""]
    for word in text.split(" "):
        candidate = f"{lines[-1]} {word}" if lines[-1] else word
        if width(candidate) <= columns:
            lines[-1] = candidate
            continue
        pieces = _pieces(word, columns)
        lines = [*lines, *pieces] if lines[-1] else [*lines[:-1], *pieces]
    return lines


def _pieces(word: str, columns: int) -> list[str]:
    pieces, used = [""], 0
    for character in word:
        size = _columns(character)
        if used + size > columns:
            pieces.append("")
            used = 0
        pieces[-1] += character
        used += size
    return pieces


def pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def visible(text: str) -> str:
    """`text` with all that could move the cursor, hide or reorder something written out: `\\x1b`, `\\u202e`. Line ends
    and tabs stay what they are."""
    return _replaced(text, "\n\t", lambda one: one.encode("unicode_escape").decode())


def visible_json(text: str) -> str:
    """The same for a JSON text: it stays the same JSON."""
    return _replaced(text, "\n", lambda one: json.dumps(one)[1:-1])


def plain(text: str) -> str:
    """`text` as one line: like `visible`, with a blank for each line end and tab."""
    if text.isprintable():
        return text
    return visible(text.replace("\r\n", "\n")).replace("\n", " ").replace("\t", " ")


def _harmless(character: str) -> bool:
    # Python calls blanks other than the ASCII one not printable, the ideographic one among them.
    return character.isprintable() or category(character) == "Zs"


def _replaced(text: str, kept: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    for one in set(text):
        if one not in kept and not _harmless(one):
            text = text.replace(one, escape(one))
    return text


def _columns(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
