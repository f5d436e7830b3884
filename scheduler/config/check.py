"""A file on the bench: everything that is wrong with it, and everything that is only unwise."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime

from scheduler.config.actions.registry import Actions
from scheduler.config.advice import advise
from scheduler.config.load import load
from scheduler.config.problem import ConfigError, Problem
from scheduler.config.sources import Disk, Source
from scheduler.core.job import Configuration
from scheduler.core.value_object import value_object


@value_object
class Report:
    """`configuration` is None if there are errors. Warnings say so when a secret is missing: its job is red."""

    configuration: Configuration | None
    errors: Sequence[Problem]
    warnings: Sequence[Problem]

    def good(self, *, strict: bool = False) -> bool:
        """Whether the file may be used; `strict`: warnings count as errors."""
        return not self.errors and not (strict and self.warnings)


def check_file(
    path: str | os.PathLike[str],
    now: datetime,
    *,
    actions: Actions | None = None,
    environ: Mapping[str, str] | None = None,
    elsewhere: bool = False,
) -> Report:
    """Reads a file (or a folder) like the daemon does. Never raises, whatever the bytes are. `elsewhere`: it is for
    another machine, so nothing is looked for on this one."""
    return check(Disk(path), now, actions=actions, environ=environ, elsewhere=elsewhere)


def check(
    source: Source,
    now: datetime,
    *,
    actions: Actions | None = None,
    environ: Mapping[str, str] | None = None,
    elsewhere: bool = False,
) -> Report:
    """The same of any source."""
    try:
        loaded = load(source, actions=actions, environ=environ)
    except ConfigError as error:
        return Report(None, error.problems, ())
    return Report(loaded.configuration, (), advise(loaded, now, environ, elsewhere=elsewhere))
