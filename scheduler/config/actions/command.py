"""`command`: a process. A list is executed as it is, a text is given to /bin/sh -c."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import model_validator

from scheduler.config.actions.base import Options
from scheduler.config.fields import to_text
from scheduler.config.refusal import refuse, shown, text_of
from scheduler.core.model import Json


class CommandOptions(Options):
    kind: ClassVar[str] = "command"
    summary: ClassVar[str] = "Runs a process: a list is executed as it is, a text by /bin/sh -c."

    command: str | list[str]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, list):
            if not value:
                refuse("the command is empty", "write the program and its arguments: [program, argument]")
            for one in value:
                if text_of(one) is None:
                    refuse(f"{shown(one)} in the command is not a text", "put each argument in quotes")
            words = [to_text(one) for one in value]
            if not words[0]:
                refuse("the program's name is empty", "write the program as the first item")
            return {"command": words}
        if text_of(value) is None:
            refuse(f"{shown(value)} is not a command", "write a text for /bin/sh, or a list: [program, argument]")
        text = to_text(value)
        if not text.strip():
            refuse("the command is empty", "write what to run")
        return {"command": text}

    def written(self) -> Json:
        return self.command

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        word = {"type": ["string", "number"]}
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": word}]}
