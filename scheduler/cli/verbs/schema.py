"""`schedctl schema`: the JSON Schema of jobs.yaml; offline."""

from __future__ import annotations

from scheduler.cli.surface import Surface
from scheduler.cli.verb import verb


@verb("schedctl schema > jobs.schema.json")
def schema(surface: Surface) -> int:
    """Writes the JSON Schema (draft-07) of jobs.yaml, for editors: they then help with every key."""
    from scheduler.config.schema import text

    surface.out(text().rstrip("\n"))
    return 0
