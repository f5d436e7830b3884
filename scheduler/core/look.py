"""A look at the ledger: what there is to do in it, for all loops of a node at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from scheduler.core.value_object import value_object

COUNTED = "watched"
"""The value that says that somebody watches; it tells itself how often it was written (`writes`), for the marks."""


@value_object
class Beat:
    """Of a node that has not stopped and is not dead. `lease` in seconds, None: nobody can take over from it."""

    node: str
    number: int
    lease: float | None
    generation: int


@value_object
class Glance:
    """What the worker of a node asks again and again while there is work: one statement. `pending`: there are PENDING
    runs; `cancels`: runs of this node that somebody wants to end, and why. `now` as in Look."""

    now: datetime
    pending: bool
    cancels: Mapping[str, str]


@value_object
class Look:
    """What one statement found, as one state of the database.

    Of two looks with equal marks the later one found what the earlier one did: nothing was written in between but
    beats, and that somebody watches. A mark that differs proves nothing."""

    now: datetime
    """The time that planning uses: the database's on PostgreSQL, this machine's on SQLite."""
    mark: str
    generation: int
    """The newest; 0 if there is none."""
    next_due: datetime | None
    """The earliest `next_due_at` of the jobs that this node has loaded."""
    next_deadline: datetime | None
    """The earliest one of a job that is not kept as missed, whether it has passed or not."""
    next_notification: datetime | None
    """When the first notification that waits is to be sent."""
    pending: bool
    """There are PENDING runs."""
    cancels: bool
    """Somebody wants a run of this node to end."""
    orphans: bool
    """There are RUNNING runs whose node is not live any more."""
    elsewhere: bool
    """External jobs have runs under way."""
    held: bool
    """There are events of paused sources whose runs are yet to be made."""
    pings: bool
    """There are pings that a dead man's switch outside has yet to hear."""
    beats: tuple[Beat, ...]
    """Of this node and all others."""
    values: Mapping[str, str]
    """What the installation remembers, by name (Generations.value)."""
