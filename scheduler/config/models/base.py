"""What all models of jobs.yaml share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from scheduler.core.value_object import value_object


@value_object
class Nested:
    """Annotates a field whose mapping form is this model, where the field's own type does not say so."""

    model: type[BaseModel]


class Model(BaseModel):
    """A mapping with known keys. A key without a value (`timeout:`) counts as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _absent(cls, value: Any) -> Any:
        if isinstance(value, dict) and None in value.values():
            return {key: one for key, one in value.items() if one is not None}
        return value
