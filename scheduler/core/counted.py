"""Numbers of things, in words."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 job`, `2 jobs`, `2 processes` (where the plural is not simply an s more)."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
