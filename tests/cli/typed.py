"""schedctl without a daemon: what a command line writes, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler.cli.main import run
from scheduler.cli.surface import Surface

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Typist:
    def __init__(self, capsys: pytest.CaptureFixture[str], environ: Mapping[str, str] | None = None) -> None:
        self._capsys = capsys
        self._environ = {"TERM": "dumb", "HOME": "/nonexistent", **(environ or {})}

    def __call__(self, *arguments: str, **environ: str) -> Answer:
        surface = Surface({**self._environ, **environ})
        surface.now = lambda: NOW
        code = run(arguments, surface)
        out, err = self._capsys.readouterr()
        return Answer(code, out, err)
