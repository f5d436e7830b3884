"""Retention: removes what is older than its job or source keeps it, a little at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from scheduler.core.canary import CANARY
from scheduler.core.execution import Bus
from scheduler.core.look import Look
from scheduler.core.ports import Store, Transaction
from scheduler.engine.in_force import InForce

EVERY = timedelta(minutes=5)
JOBS = 1_000
"""Jobs looked at per pass, in rotation."""
ROWS = 500
"""Rows removed per transaction."""
KEEP = timedelta(days=90)
KEEP_OUTPUT = timedelta(days=30)
"""For jobs that are no longer in the file."""
KEEP_EVENTS = timedelta(days=45)
"""For sources that are no longer in the file, if nobody knows how long they were kept."""
KEEP_NODES = timedelta(days=7)
KEEP_FLIPS = timedelta(days=400)


class Retention:
    def __init__(self, store: Store, in_force: InForce, bus: Bus) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._after = ""
        self._last: datetime | None = None
        self._noted: dict[str, timedelta] = {}

    def rests(self, look: Look) -> bool:
        """The last pass is no EVERY ago, or this node stands aside."""
        return self._in_force.behind is not None or self._waits(look.now)

    def _waits(self, now: datetime) -> bool:
        return self._last is not None and timedelta(0) <= now - self._last < EVERY

    def tick(self, now: datetime) -> int:
        """One pass every five minutes, unless this node stands aside; the number of rows removed."""
        if self._in_force.behind is not None:
            return 0  # How long things are kept is not known here.
        if self._waits(now):
            return 0
        self._last = now
        begins = self._after == ""
        with self._store.read() as tx:
            waiting = tx.jobs.names(self._after, JOBS)
            rules = {name: self._rule(name) for name in waiting}
            old = tx.runs.prunable(rules, now)
        pruned = {name: self._prune(name, rules[name], now) for name in old}
        # The canary's are of no interest: one a minute, for ever.
        removed = sum(count for name, count in pruned.items() if name != CANARY)
        self._after = waiting[-1] if len(waiting) == JOBS else ""
        if begins:
            removed += self._forget(now)
            with self._store.begin() as tx:
                removed += tx.nodes.prune(now - KEEP_NODES)
                removed += tx.jobs.prune_flips(now - KEEP_FLIPS, ROWS)
        if removed:
            self._bus.publish("retention.pruned", rows=removed)
        return removed

    def _rule(self, name: str) -> tuple[timedelta | int, timedelta]:
        """How long its runs and outputs are kept."""
        job = self._in_force.job(name)
        return (job.keep, job.keep_output) if job is not None else (KEEP, KEEP_OUTPUT)

    def _prune(self, name: str, rule: tuple[timedelta | int, timedelta], now: datetime) -> int:
        keep, keep_output = rule
        return self._in_batches(lambda tx: tx.runs.prune(name, keep, keep_output, now, ROWS))

    def _forget(self, now: datetime) -> int:
        """Events of sources. Of those that are no longer in the file they are kept as long as they were before: their
        provider may send them again when the source comes back."""
        keeps = {name: source.keep for name, source in self._in_force.current.configuration.sources.items()}
        self._note(keeps)
        with self._store.read() as tx:
            gone = set(tx.events.sources()) - keeps.keys()
            keeps |= {name: _keep_of(tx, name) for name in gone}
        return sum(
            self._in_batches(partial(_prune_events, source=name, keep=keep, now=now)) for name, keep in keeps.items()
        )

    def _note(self, keeps: Mapping[str, timedelta]) -> None:
        """For the time after they are gone."""
        news = {name: keep for name, keep in keeps.items() if self._noted.get(name) != keep}
        if not news:
            return
        with self._store.begin() as tx:
            for name, keep in news.items():
                tx.generations.set_value(_KEEP + name, str(keep.total_seconds()))
        self._noted |= news

    def _in_batches(self, prune: Callable[[Transaction], int]) -> int:
        total = 0
        while True:
            with self._store.begin() as tx:
                removed = prune(tx)
            total += removed
            if removed < ROWS:
                return total


_KEEP = "keep of source "


def _prune_events(tx: Transaction, source: str, keep: timedelta, now: datetime) -> int:
    return tx.events.prune(source, keep, now, ROWS)


def _keep_of(tx: Transaction, source: str) -> timedelta:
    noted = tx.generations.value(_KEEP + source)
    return KEEP_EVENTS if noted is None else timedelta(seconds=float(noted))
