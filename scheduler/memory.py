"""Memory is kept together, and what is no longer needed goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

QUIET = 5.0
"""Seconds without a reload after which memory is tidied: nobody else works meanwhile."""

FEW = 500
"""Values that are copied at once: less than 20 ms in which no other thread works."""

_M_ARENA_MAX = -8


LATEST = 600.0
"""Seconds after the first reload after which it is tidied in any case: there may always be something at work."""


class Lull:
    """Has `work` done once, as soon as nobody has asked for it for QUIET seconds and nothing is `busy`."""

    def __init__(
        self, work: Callable[[], None], busy: Callable[[], bool], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._work = work
        self._busy = busy
        self._monotonic = monotonic
        self._from = self._latest = float("inf")

    def ask(self) -> None:
        """From any thread."""
        now = self._monotonic()
        self._from, self._latest = now + QUIET, min(self._latest, now + LATEST)

    def round(self) -> None:
        """To be called again and again, from one thread."""
        now = self._monotonic()
        if now >= self._latest or (now >= self._from and not self._busy()):
            self._from = self._latest = float("inf")
            self._work()


YOUNG = 10_000
"""Objects after which those that came last are looked through for cycles. With Python's 700 a daemon that takes
webhooks spends a twentieth of its time on it and finds nothing."""


def collect_seldom() -> None:
    """Most objects go as soon as nobody has them; what is left of cycles until the next look are some MB at most."""
    gc.set_threshold(YOUNG)


def keep_together() -> None:
    """Before there are threads: one heap for all of them. glibc gives each its own, to spare them a lock that Python's
    threads, of which one runs at a time, hardly ever wait for; twelve half-empty heaps are 9 MB."""
    with suppress(OSError, AttributeError):  # Another C library, which has no such call.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


@contextmanager
def absent(module: str) -> Iterator[None]:
    """Who is imported meanwhile goes without this module, which it would take where it is installed."""
    known = sys.modules.get(module)
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
        if known is not None:
            sys.modules[module] = known


def give_back() -> None:
    """After a large piece of work: drops its garbage, and returns free pages to the system, which the allocator of
    glibc keeps otherwise. What is left is set aside: it will live long, and later collections need not look at it.
    Took 50 ms with 10,000 jobs loaded."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    with suppress(OSError, AttributeError):  # Another C library, which has no such call.
        ctypes.CDLL(None).malloc_trim(0)


def compacted(values: Mapping[str, T]) -> Mapping[str, T]:
    """Equal values (dataclasses), laid out anew side by side, those that lie together with one copy of what is the same
    in them; few of them are left where they are. What a large text was read into lies scattered among what was needed
    only to read it, and keeps the system from getting that back: of 10,000 jobs 21 MB. Took 0.8 s for these."""
    if len(values) < FEW:
        return values
    copies: dict[str, T] = {}
    known: dict[bytes, object] = {}
    items = ((name, _sharing(value, known)) for name, value in values.items())
    while few := list(islice(items, FEW)):
        copies.update(pickle.loads(pickle.dumps(few, pickle.HIGHEST_PROTOCOL)))  # noqa: S301  # our own, this moment
    return copies


def _sharing(value: T, known: dict[bytes, object]) -> T:
    """The same, made of parts that others have too, as far as they are `known` by what they pickle to."""
    parts = {}
    for field in fields(value):  # type: ignore[arg-type]  # It is a dataclass.
        part = getattr(value, field.name)
        if isinstance(part, str) or is_dataclass(part):
            parts[field.name] = known.setdefault(pickle.dumps(part, pickle.HIGHEST_PROTOCOL), part)
    return replace(value, **parts)  # type: ignore[type-var]
