"""Hints between nodes: words that make another node look at once at what it would find by itself a second later.

A hint carries no truth. It may be lost, late, doubled or made up, and nothing but promptness depends on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from scheduler.core.value_object import value_object

WORK = "work"
"""There are runs that could be taken, and whoever says so cannot take all of them."""
CANCEL = "cancel"
"""A run is to be ended that another node may hold."""
CONFIGURATION = "configuration"
"""There is a newer generation."""
SETTLED = "settled"
"""Runs have ended that somebody may wait for."""
ALL = frozenset({WORK, CANCEL, CONFIGURATION, SETTLED})

LISTENING = "listening"
POLLING = "polling"


@value_object
class Hearing:
    """How a node hears of what others did: `LISTENING`, or `POLLING` once a second and why."""

    state: str
    why: str = ""


@value_object
class Word:
    """What a node tells of itself with each beat. `hints` is how it hears of what others did, `listening` or `polling:`
    and why (None: there are no others); `aside` why it neither plans nor claims, if it stands aside."""

    hints: str | None = None
    aside: str | None = None


class Ear(Protocol):
    """What carries hints. It calls `said` for what there is to say (after `ring`, in a thread of its own), and `heard`
    with what others said."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """Says what waits to be said, if that can be done at once."""
        ...

    def ring(self) -> None:
        """There is something to say. From any thread, never waits."""
        ...

    @property
    def hearing(self) -> Hearing: ...


Said = Callable[[], Collection[str]]
Heard = Callable[[Collection[str]], None]
