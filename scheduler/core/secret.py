"""A secret, named and not held."""

from __future__ import annotations

from scheduler.core.value_object import value_object


@value_object
class Secret:
    """Where a secret is read when the run starts: exactly one of the two."""

    env: str | None = None
    file: str | None = None
    prefix: str = ""
