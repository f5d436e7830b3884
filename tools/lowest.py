"""Prints the oldest version of each dependency that pyproject.toml allows, as requirements for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
for one in project["project"]["dependencies"]:
    name, version = re.fullmatch(r"([\w.\[\]-]+)>=([\w.]+).*", one).groups()
    print(f"{name}=={version}")
# The tools of the tests may be as new as they like.
for group in ("build", "dev"):
    print(*(one for one in project["dependency-groups"][group] if isinstance(one, str)), sep="\n")
