"""Which schemes there are: found, not listed."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from scheduler import signatures
from scheduler.core.errors import InvalidInput, refuse_all
from scheduler.core.preset import Preset
from scheduler.core.signature import Scheme


@cache
def discover() -> Mapping[str, type[Scheme]]:
    """Scheme classes by their kind, one module of this package each."""
    found: dict[str, type[Scheme]] = {}
    for module in sorted(pkgutil.iter_modules(signatures.__path__), key=lambda one: one.name):
        if module.ispkg:
            continue
        name = f"{signatures.__name__}.{module.name}"
        for one in vars(importlib.import_module(name)).values():
            own = isinstance(one, type) and one.__module__ == name
            if own and isinstance(getattr(one, "kind", None), str) and hasattr(one, "verify"):
                found[one.kind] = one
    return MappingProxyType(found)


def presets() -> Mapping[str, Preset]:
    """What is known about providers, by the word after `preset`."""
    return {kind: one.preset for kind, one in discover().items() if one.preset is not None}


def options(kind: str) -> Mapping[str, str | None]:
    """What may be written beside `scheme: KIND`, each with its default (None: must be written). All are texts."""
    fields = dataclasses.fields(cast(Any, _class(kind)))
    return {one.name: None if one.default is dataclasses.MISSING else one.default for one in fields if one.init}


def build(kind: str, written: Mapping[str, str]) -> Scheme:
    """The scheme with these options. InvalidInput for a kind or an option that there is not, and for one that cannot
    be."""
    known = options(kind)
    hint = f"write {', '.join(known)}" if known else "remove it"
    strange = [name for name in written if name not in known]
    lacking = [name for name, default in known.items() if default is None and name not in written]
    refuse_all(
        [
            *(InvalidInput(f"the scheme {kind} has no option {name}", hint=hint) for name in strange),
            *(InvalidInput(f"the scheme {kind} needs the option {name}", hint=f"write {name}: …") for name in lacking),
        ]
    )
    return _class(kind)(**written)


def _class(kind: str) -> type[Scheme]:
    found = discover()
    if kind not in found:
        raise InvalidInput(f"there is no signature scheme {kind}", hint=f"write one of {' '.join(sorted(found))}")
    return found[kind]
