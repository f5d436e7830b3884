"""A secret, named and not held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is read when the run starts: exactly one of the two."""

    env: str | None = None
    file: str | None = None
    prefix: str = ""
