"""The list of events in docs/logs.md is what the code logs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
EVENT = re.compile(r"[a-z]+(_[a-z]+)*")


def _said() -> Iterator[str]:
    """Every constant that is logged as an event or published as a notice; texts with blanks come from `logging`."""
    for file in sorted((ROOT / "scheduler").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            name = node.args[0]
            if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
                continue
            logged = node.func.attr in LEVELS and isinstance(node.func.value, ast.Name) and node.func.value.id == "log"
            if logged or node.func.attr == "publish":
                event = name.value.replace(".", "_")
                if EVENT.fullmatch(event):
                    yield event


def test_every_event_is_in_the_list() -> None:
    text = (ROOT / "docs" / "logs.md").read_text()
    listed = set(re.findall(r"`([a-z_]+)`", text[text.index("## Events") : text.index("## Traces")]))
    said = set(_said())
    assert len(said) > 50
    assert said - listed == set()
