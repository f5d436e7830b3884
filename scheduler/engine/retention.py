"""Retention: removes what is older than its job or source keeps it, a little at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from scheduler.core.canary import CANARY
from scheduler.core.execution import Bus
from scheduler.core.ports import Store, Transaction
from scheduler.core.source import Source
from scheduler.engine.in_force import InForce

EVERY = timedelta(minutes=1)
JOBS = 200
"""Jobs looked at per pass, in rotation."""
ROWS = 500
"""Rows removed per transaction."""
KEEP = timedelta(days=90)
KEEP_OUTPUT = timedelta(days=30)
"""For jobs that are no longer in the file."""
KEEP_NODES = timedelta(days=7)
KEEP_FLIPS = timedelta(days=400)


class Retention:
    def __init__(self, store: Store, in_force: InForce, bus: Bus) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._after = ""
        self._last: datetime | None = None

    def tick(self, now: datetime) -> int:
        """One pass a minute, unless this node stands aside; the number of rows removed."""
        if self._in_force.behind is not None:
            return 0  # How long things are kept is not known here.
        if self._last is not None and timedelta(0) <= now - self._last < EVERY:
            return 0
        self._last = now
        with self._store.read() as tx:
            names = sorted(tx.jobs.states())
        waiting = [name for name in names if name > self._after][:JOBS]
        pruned = {name: self._prune(name, now) for name in waiting}
        # The canary's are of no interest: one a minute, for ever.
        removed = sum(count for name, count in pruned.items() if name != CANARY)
        removed += sum(self._forget(source, now) for source in self._in_force.current.configuration.sources.values())
        self._after = waiting[-1] if len(waiting) == JOBS else ""
        with self._store.begin() as tx:
            removed += tx.nodes.prune(now - KEEP_NODES)
            removed += tx.jobs.prune_flips(now - KEEP_FLIPS, ROWS)
        if removed:
            self._bus.publish("retention.pruned", rows=removed)
        return removed

    def _prune(self, name: str, now: datetime) -> int:
        job = self._in_force.job(name)
        keep, keep_output = (job.keep, job.keep_output) if job is not None else (KEEP, KEEP_OUTPUT)
        return self._in_batches(lambda tx: tx.runs.prune(name, keep, keep_output, now, ROWS))

    def _forget(self, source: Source, now: datetime) -> int:
        """Events of a source that is no longer in the file stay: how long they are kept is not known."""
        return self._in_batches(lambda tx: tx.events.prune(source.name, source.keep, now, ROWS))

    def _in_batches(self, prune: Callable[[Transaction], int]) -> int:
        total = 0
        while True:
            with self._store.begin() as tx:
                removed = prune(tx)
            total += removed
            if removed < ROWS:
                return total
