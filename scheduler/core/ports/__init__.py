"""The store as the rest of the product sees it. Siblings know each other only through the seams in the core; app.py
joins them.

A `Transaction` is one database transaction; its verbs are in its groups, one a file. Every write is compare-and-set and
says whether it took place. All transactions lock rows in one order: node, generation, job, queue, lock, run.
`now` is always the caller's instant (database time on PostgreSQL), read once per tick, or when the transaction began.
"""

from scheduler.core.ports.events import Events
from scheduler.core.ports.generations import Generations
from scheduler.core.ports.jobs import Jobs
from scheduler.core.ports.ledger import Ledger
from scheduler.core.ports.nodes import Nodes
from scheduler.core.ports.notifications import Notifications
from scheduler.core.ports.outgoing import OutgoingPings
from scheduler.core.ports.queues import Line, Queues
from scheduler.core.ports.runs import Runs
from scheduler.core.ports.scans import Scans
from scheduler.core.ports.store import Store, Transaction, Writing

__all__ = [
    "Events",
    "Generations",
    "Jobs",
    "Ledger",
    "Line",
    "Nodes",
    "Notifications",
    "OutgoingPings",
    "Queues",
    "Runs",
    "Scans",
    "Store",
    "Transaction",
    "Writing",
]
