"""What somebody sees who types at a served daemon."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.faces import Served


class Screen:
    """`err` and `code` are those of the last command."""

    def __init__(self, served: Served, capsys: pytest.CaptureFixture[str]) -> None:
        self.served = served
        self.rig = served.rig
        self._capsys = capsys
        self.err = ""
        self.code = 0

    def __call__(self, *arguments: str) -> list[str]:
        """The lines on stdout."""
        self.code = self.served.schedctl(*arguments)
        out, self.err = self._capsys.readouterr()
        return out.splitlines()

    def json(self, *arguments: str) -> Any:
        return json.loads("\n".join(self(*arguments, "-o", "json")))

    @property
    def next(self) -> str:
        """What it says to type next."""
        last = self.err.splitlines()[-1]
        assert last.startswith("next: "), last
        return last.removeprefix("next: ")
