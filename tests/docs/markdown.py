"""Headings and examples of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def sections(text: str, level: int) -> dict[str, str]:
    """Bodies by heading, of headings of that level; each up to the next heading of that level or a higher one."""
    found: dict[str, str] = {}
    name, fenced = None, False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"(#+) (.*)", line)
        if heading is not None and len(heading[1]) <= level:
            name = heading[2] if len(heading[1]) == level else None
            if name is not None:
                assert name not in found, f"{name} is written twice"
                found[name] = ""
        elif name is not None:
            found[name] += line
    return found


def blocks(text: str, language: str) -> list[str]:
    """What stands in ```language fences."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
