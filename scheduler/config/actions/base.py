"""What every kind of action tells about itself: its key in jobs.yaml and the options below it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from scheduler.config.models.base import Model
from scheduler.config.problem import Path
from scheduler.core.model import Json
from scheduler.core.secret import Secret


class Options(Model):
    """Options of one kind of action. Subclasses add fields; an executor gets what `options` returns."""

    kind: ClassVar[str]
    """The key in jobs.yaml, and the name of the executor."""
    summary: ClassVar[str]
    """One line for people who hover over the key."""
    default_timeout: ClassVar[timedelta] = timedelta(hours=24)
    replaced: ClassVar[tuple[Path, ...]] = ()
    """Below the key: where `${NAME}` is replaced."""

    def options(self) -> dict[str, Json]:
        """For the executor: JSON, all defaults applied, secrets as references."""
        return self.model_dump(mode="json", exclude_none=True)

    def written(self) -> Json:
        """For jobs.yaml: what means the same as this."""
        return self.options()

    def secrets(self) -> dict[Path, Secret]:
        """The secrets that these options refer to, by the path of each below the action's key."""
        return {}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema of everything that may be written after the key."""
        return cls.model_json_schema()
