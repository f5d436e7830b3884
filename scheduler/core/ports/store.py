"""The store: transactions, and the time that planning uses."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from scheduler.core.access import Tokens
from scheduler.core.look import Glance, Look
from scheduler.core.ports.events import Events
from scheduler.core.ports.generations import Generations
from scheduler.core.ports.jobs import Jobs
from scheduler.core.ports.ledger import Ledger
from scheduler.core.ports.nodes import Nodes
from scheduler.core.ports.notifications import Notifications
from scheduler.core.ports.outgoing import OutgoingPings
from scheduler.core.ports.queues import Queues
from scheduler.core.ports.runs import Runs
from scheduler.core.ports.scans import Scans
from scheduler.core.value_object import value_object


@value_object
class Transaction:
    """One database transaction: its verbs by what they are about."""

    nodes: Nodes
    generations: Generations
    jobs: Jobs
    runs: Runs
    queues: Queues
    ledger: Ledger
    tokens: Tokens
    events: Events
    scans: Scans
    notifications: Notifications
    outgoing: OutgoingPings


@value_object
class Writing(Transaction):
    """One that may write. `now`: the time that planning uses, when it began."""

    now: datetime


class Store(Protocol):
    kind: str
    """`sqlite` or `postgresql`"""

    def begin(self) -> AbstractContextManager[Writing]:
        """A writing transaction: committed at the end of the block, rolled back by an exception. Raises Unavailable
        when the database cannot be reached, is locked too long or is full; then nothing was written."""
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent, reading transaction."""
        ...

    def now(self) -> datetime:
        """The time that planning uses: the database's on PostgreSQL, this machine's on SQLite."""
        ...

    def look(self, node: str, generation: int, last: Look | None = None) -> Look:
        """What there is to do for this node, which has loaded that generation: one statement. `last`: what it found
        before, with the same two; where nothing was written since, not even that statement may be needed."""
        ...

    def glance(self, node: str) -> Glance:
        """What the worker of this node asks while there is work: one statement."""
        ...
