"""The ways of listing a provider's events that there are, as far as jobs.yaml speaks of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast


class Option(Protocol):
    """One key below `with:`."""

    @property
    def name(self) -> str: ...

    @property
    def secret(self) -> bool: ...


class Compensators(Protocol):
    """What `compensators.registry` offers. InvalidInput with the reason and the remedy; for an option the reason begins
    with `with.NAME: `."""

    def folders_of(self, setting: str | None) -> tuple[str, ...]: ...

    def options(self, kind: str, folders: Sequence[str] = ()) -> Sequence[Option]: ...

    def build(
        self, kind: str, written: Mapping[str, Any], event: Mapping[str, str], folders: Sequence[str] = ()
    ) -> object: ...


def compensators() -> Compensators:
    """Loaded by name and only for files with scans: they are plug-ins, not a layer."""
    return cast(Compensators, importlib.import_module("compensators.registry"))
