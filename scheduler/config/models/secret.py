"""Where a secret is read when a run starts; the secret itself is never in the file."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from scheduler.config.fields import Line, Text, Variable
from scheduler.config.models.base import Model
from scheduler.config.refusal import refuse, shown
from scheduler.core.secret import Secret


class SecretModel(Model):
    """`{env: NAME}` or `{file: PATH}`."""

    env: Annotated[Line | None, Field(description="The variable of the daemon's environment that holds it.")] = None
    file: Annotated[Line | None, Field(description="The file that holds it; a line break at its end is dropped.")] = (
        None
    )
    prefix: Annotated[Text, Field(description='Put before it, as in "Bearer ".')] = ""

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, value: Any) -> Any:
        if not isinstance(value, dict | SecretModel):
            refuse("a secret is never written into this file", "write {env: NAME} or {file: PATH}")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            refuse("a secret has exactly one place", "write {env: NAME} or {file: PATH}")
        for text in (self.env, self.file, self.prefix):
            if text is not None and "${" in text:
                refuse(
                    f"{shown(text)} is taken as it is: nothing is replaced in a secret", "write the name or path out"
                )
        return self

    def noun(self) -> Secret:
        return Secret(env=self.env, file=self.file, prefix=self.prefix)

    def written(self) -> dict[str, str]:
        """The shortest form that means the same."""
        place = {"env": self.env} if self.env is not None else {"file": self.file}
        return {name: text for name, text in (*place.items(), ("prefix", self.prefix)) if text}


def _mapping(value: Any) -> Any:
    if not isinstance(value, dict):
        refuse(f"{shown(value)} is not a mapping", "write one `NAME: {env: OTHER}` per line below it")
    return value


Secrets = Annotated[dict[Variable, SecretModel], BeforeValidator(_mapping)]
