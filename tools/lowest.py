"""Prints the oldest version of each direct dependency that pyproject.toml allows, as requirements for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
groups = project["dependency-groups"]
wanted = [*project["project"]["dependencies"], *groups["build"], *groups["dev"]]
for one in wanted:
    if isinstance(one, str):
        name, version = re.fullmatch(r"([\w.\[\]-]+)>=([\w.]+).*", one).groups()
        print(f"{name}=={version}")
