"""What was measured, kept per measurement, so that one can be taken anew without the others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measurement import Measurement, Row

FOLDER = Path(__file__).parent / ".results"


@dataclass(frozen=True, slots=True)
class Result:
    """`machine` describes it and its moment, `limits` are its own figures (milliseconds, taken in the same run),
    `version` is the commit that was measured."""

    measurement: Measurement
    machine: Mapping[str, str]
    limits: Mapping[str, float]
    version: str
    full: bool
    rows: list[Row]

    def save(self) -> None:
        place = _folder(self.full)
        place.mkdir(parents=True, exist_ok=True)
        data = {
            "machine": dict(self.machine),
            "limits": dict(self.limits),
            "version": self.version,
            "rows": [asdict(row) for row in self.rows],
        }
        (place / f"{self.measurement.name}.json").write_text(json.dumps(data, indent=1) + "\n")


def load(known: Mapping[str, Measurement], full: bool) -> list[Result]:
    """The newest result of each measurement that has one, in their order."""
    found = []
    for name, measurement in known.items():
        file = _folder(full) / f"{name}.json"
        if not file.exists():
            continue
        data: dict[str, Any] = json.loads(file.read_text())
        rows = [Row(**row) for row in data["rows"]]
        found.append(Result(measurement, data["machine"], data["limits"], data["version"], full, rows))
    return found


def version() -> str:
    """The commit of this tree, with a `+` if something was changed since; empty outside of a repository."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return said.stdout.strip()


def _folder(full: bool) -> Path:
    return FOLDER if full else FOLDER / "tiny"
