"""Shorthands for tests that load texts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scheduler.config.load import load_texts
from scheduler.config.problem import ConfigError, Problem
from scheduler.core.job import Configuration, Job

GOOD = "schedule: 0 8 * * 1, timezone: UTC, command: x"


def load(text: str, **environ: str) -> Configuration:
    return load_texts({"jobs.yaml": text}, "jobs.yaml", environ=environ)


def one(keys: str, **environ: str) -> Job:
    """The job `a` with these keys, in flow style."""
    return load(f"jobs: {{a: {{{keys}}}}}", **environ).jobs["a"]


def problems(text: str, **environ: str) -> Sequence[Problem]:
    """The errors of a broken text."""
    with pytest.raises(ConfigError) as caught:
        load(text, **environ)
    return caught.value.problems
