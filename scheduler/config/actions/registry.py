"""Which kinds of actions there are: found, not listed.

A kind is a module with a subclass of `Options`: those that come with jobs.yaml's own package, and one file per
executor that brings its options along. To add a kind is to add that one file.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

from scheduler.config.actions.base import Options

_FOLDERS = ("scheduler.config.actions", "scheduler.executors")

Actions = Mapping[str, type[Options]]


@cache
def discover() -> Actions:
    """All kinds by their key. Of an executor whose kind is known already the module is not imported."""
    found: dict[str, type[Options]] = {}
    for folder in _FOLDERS:
        spec = importlib.util.find_spec(folder)
        if spec is None or spec.submodule_search_locations is None:
            continue
        for module in sorted(pkgutil.iter_modules(spec.submodule_search_locations), key=lambda one: one.name):
            if module.ispkg or module.name in found or not _may_define(folder, module.name):
                continue
            for options in options_in(importlib.import_module(f"{folder}.{module.name}")):
                found.setdefault(options.kind, options)
    return MappingProxyType(found)


def _may_define(folder: str, name: str) -> bool:
    """Whether a module's text mentions the base class: importing the others would cost what they import."""
    spec = importlib.util.find_spec(f"{folder}.{name}")
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return spec is not None
    return "Options" in Path(spec.origin).read_text("utf-8")


def options_in(module: ModuleType) -> list[type[Options]]:
    """The kinds that a module defines itself."""
    return [
        one
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, Options)
        and one.__module__ == module.__name__
        and getattr(one, "kind", None)
    ]
