"""Which kinds of channels there are: found, not listed. Nothing is imported before it is needed."""

from __future__ import annotations

import importlib
import pkgutil

from scheduler.observe import channels
from scheduler.observe.channels.order import Sender

_NO_KINDS = frozenset({"__main__", "couriers", "order", "registry", "verdict"})


def kinds() -> list[str]:
    """Their names, which are those of the modules."""
    return sorted(one.name for one in pkgutil.iter_modules(channels.__path__) if one.name not in _NO_KINDS)


def sender(kind: str) -> Sender:
    """What sends to channels of that kind; what it needs of libraries is imported now."""
    found: Sender = importlib.import_module(f"{channels.__name__}.{kind}").send
    return found
