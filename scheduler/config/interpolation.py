"""`${NAME}` in the few values where it is replaced: urls, folders, arguments, includes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationInfo

from scheduler.config.reader import Real
from scheduler.config.refusal import refuse, shown

REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
REPLACED = "`${NAME}` is replaced in url, ping_url, workdir, include and with only"

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]{0,254}")
_ANY_FORM = re.compile(r"\$(?:(\$)|\{([^}]*)(\}?))")


def check_variable(name: str) -> None:
    """A name that environment variables of a job may have."""
    if not _VARIABLE.fullmatch(name):
        refuse(f"{shown(name)} is not a name of a variable", "use letters, digits and _, not beginning with a digit")
    if name.startswith("SCHED_"):
        refuse(f"`{name}` is set by the scheduler", "choose a name that does not begin with SCHED_")


class Interpolation:
    """Values of `${NAME}` and a record of those that were used. Given to pydantic as validation context."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self.used: dict[str, str] = {}

    @property
    def plugins(self) -> str | None:
        """What SCHEDULER_PLUGINS says there."""
        return self._environ.get("SCHEDULER_PLUGINS")

    def fill(self, text: str) -> str:
        """`${NAME}` replaced, `$$` made `$`. Refused: unknown names, and forms that other tools have."""
        return _ANY_FORM.sub(self._one, text) if "$" in text else text

    def fill_all(self, value: Any) -> Any:
        """The same in every text inside a JSON value."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, Mapping):
            return {key: self.fill_all(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.fill_all(one) for one in value]
        return float(value) if isinstance(value, Real) else value

    def _one(self, found: re.Match[str]) -> str:
        if found[1]:
            return "$"
        name = found[2]
        if not found[3] or not _VARIABLE.fullmatch(name):
            refuse(f"{shown(found[0])} is not understood", "write ${NAME}; a plain ${ is written $${")
        value = self._environ.get(name)
        if value is None:
            refuse(
                f"the variable `{name}` is not defined",
                f"set {name} where the daemon starts, or write $$ for a plain $",
            )
        self.used[name] = value
        return value


def interpolation_of(info: ValidationInfo) -> Interpolation:
    context = info.context
    return context if isinstance(context, Interpolation) else Interpolation()
