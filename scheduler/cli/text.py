"""Widths and wrapping of text as a terminal shows it."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def width(text: str) -> int:
    """Columns that `text` takes: wide (CJK) characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def counted(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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


def pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def plain(text: str) -> str:
    """One line without control characters: what comes from elsewhere cannot move the cursor."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def _columns(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
