"""The ways of signing webhooks that there are, as far as jobs.yaml speaks of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from scheduler.core.preset import Preset
from scheduler.core.signature import Scheme


class Schemes(Protocol):
    """What `scheduler.signatures.registry` offers."""

    def discover(self) -> Mapping[str, type[Scheme]]: ...

    def presets(self) -> Mapping[str, Preset]: ...

    def options(self, kind: str) -> Mapping[str, str | None]: ...

    def build(self, kind: str, written: Mapping[str, str]) -> Scheme: ...


def schemes() -> Schemes:
    """Loaded by name and only for files with sources: this layer lies below the signatures."""
    return cast(Schemes, importlib.import_module("scheduler.signatures.registry"))
