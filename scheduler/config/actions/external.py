"""`external`: the job runs somewhere else and tells by pings how it went. Nothing of it is started here."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import model_validator

from scheduler.config.actions.base import Options
from scheduler.config.refusal import refuse, shown
from scheduler.core.job import EXTERNAL
from scheduler.core.model import Json


class ExternalOptions(Options):
    kind: ClassVar[str] = EXTERNAL
    summary: ClassVar[str] = "true: it runs somewhere else and pings us (/ping/KEY/JOB); expected by its schedule."

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if value is not True:
            refuse(f"{shown(value)} is not true", "write external: true, or remove the key")
        return {}

    def written(self) -> Json:
        return True

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {"const": True}
