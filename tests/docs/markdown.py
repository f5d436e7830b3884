"""Headings, examples, tables and links of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


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


def anchors(text: str) -> list[str]:
    """Where links into this text can lead: GitHub's names of its headings."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", unfenced(text), re.MULTILINE):
        name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        found.append(name if name not in found else f"{name}-{found.count(name)}")
    return found


def unfenced(text: str) -> str:
    """Without what stands in fences, which is no Markdown."""
    return re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """Where they lead: paths, addresses, anchors."""
    return re.findall(r"\]\(([^)\s]+)\)", unfenced(text))


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, by row; without the line of dashes."""
    found: list[list[list[str]]] = [[]]
    for line in unfenced(text).splitlines():
        if not line.startswith("|"):
            found.append([])
        elif not re.fullmatch(r"\|(-+\|)+", line):
            found[-1].append([cell.strip() for cell in line.strip("|").split(" | ")])
    return [table for table in found if table]


def commands(text: str) -> list[str]:
    """What a reader is told to type: lines with a prompt in ```console fences."""
    typed = (line for block in blocks(text, "console") for line in block.splitlines())
    return [line.removeprefix("$ ") for line in typed if line.startswith("$ ")]
