"""`call`: a Python function."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from scheduler.config.actions.base import Options
from scheduler.config.fields import Arguments, to_line
from scheduler.config.problem import Path
from scheduler.config.refusal import refuse, shown
from scheduler.core.model import Json

_PATTERN = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_FUNCTION = re.compile(_PATTERN, re.ASCII)


def _function(value: object) -> str:
    text = to_line(value)
    if not _FUNCTION.fullmatch(text):
        refuse(f"{shown(text)} is not a function", "write package.module:function")
    return text


Function = Annotated[str, PlainValidator(_function), WithJsonSchema({"type": "string", "pattern": r"^[\w.]+:[\w.]+$"})]


class CallOptions(Options):
    kind: ClassVar[str] = "call"
    summary: ClassVar[str] = "Calls a Python function (package.module:function) with the run's payload."
    replaced: ClassVar[tuple[Path, ...]] = (("with",),)

    function: Annotated[Function, Field(description="package.module:function")]
    arguments: Annotated[Arguments, Field(alias="with", description="Keyword arguments for it.")] = Field(
        default_factory=dict
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"function": value}
        if not isinstance(value, dict):
            refuse(f"{shown(value)} is not a function", "write package.module:function, or {function, with}")
        return value

    def options(self) -> dict[str, Json]:
        made: dict[str, Json] = {"function": self.function}
        return {**made, "with": self.arguments} if self.arguments else made

    def written(self) -> Json:
        return self.options() if self.arguments else self.function

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        function = {"type": "string", "pattern": r"^[\w.]+:[\w.]+$"}
        return {"anyOf": [function, cls.model_json_schema()]}
