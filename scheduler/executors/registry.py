"""Which kinds of actions can be carried out: found, not listed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from scheduler import executors
from scheduler.core.execution import Executor, Launch
from scheduler.core.outcome import Outcome
from scheduler.executors.context import Context
from scheduler.executors.current import Fetcher, Informed


class ActionExecutor(Executor, Protocol):
    """What a module of this package brings: an Executor that is built with a Context."""

    kind: ClassVar[str]
    own_files: ClassVar[bool]
    """The worker that carries out an attempt makes its files, as far as it needs any."""

    def __init__(self, context: Context) -> None: ...

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None: ...

    def end(self, run: str, why: str) -> None: ...

    def tick(self, now: float) -> int:
        """Does what is due at this monotonic instant (about once a second); how much that was."""
        ...

    def close(self) -> None:
        """The daemon stops: lets go of idle processes."""
        ...


def discover() -> dict[str, type[ActionExecutor]]:
    """Executor classes by their kind, one module of this package each."""
    found: dict[str, type[ActionExecutor]] = {}
    for module in sorted(pkgutil.iter_modules(executors.__path__), key=lambda one: one.name):
        if module.ispkg or module.name in ("registry", "context", "current"):
            continue
        name = f"{executors.__name__}.{module.name}"
        for one in vars(importlib.import_module(name)).values():
            own = isinstance(one, type) and one.__module__ == name
            if own and isinstance(getattr(one, "kind", None), str) and hasattr(one, "start"):
                found[one.kind] = one
    return found


def create_executors(context: Context) -> dict[str, ActionExecutor]:
    """One executor of every kind, by kind."""
    kinds = discover()
    context.records.when_forgotten(context.children.settled)
    context.records.leave_to_workers(frozenset(kind for kind, one in kinds.items() if one.own_files))
    return {kind: make(context) for kind, make in kinds.items()}


def informed(executors: Mapping[str, ActionExecutor], context: Context) -> dict[str, ActionExecutor]:
    """The same; each asks first what a run is to know of the present state."""
    fetcher = Fetcher(context)
    return {kind: Informed(executor, fetcher, context.records) for kind, executor in executors.items()}
