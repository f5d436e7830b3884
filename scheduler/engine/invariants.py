"""Invariants: what must always be true of the ledger, watched from outside the loops that keep it so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import structlog

from scheduler.core.execution import Bus
from scheduler.core.look import Look
from scheduler.core.model import Node
from scheduler.core.ports import Store
from scheduler.core.queries import NodeView, QueueView, Readable
from scheduler.core.remark import Remark

log = structlog.get_logger("engine")

OVERDUE = timedelta(minutes=1)
EVERY = timedelta(seconds=5)
PATIENCE = timedelta(seconds=10)
"""For so long a job must have been overdue before our eyes: after a downtime the planner gets its chance first."""
COMMANDS = {
    "overdue": "schedctl list --state overdue",
    "orphan": "schedctl nodes --all",
    "unserved_queue": "schedctl nodes",
    "stuck_queue": "schedctl nodes",
    "generations": "schedctl nodes",
}
"""What to type first about a broken invariant."""


class Invariants:
    """`broken` maps the name of each broken invariant to what is known about it; the last look's answer."""

    def __init__(self, store: Store, readable: Readable, bus: Bus) -> None:
        self._store = store
        self._readable = readable
        self._bus = bus
        self._last: datetime | None = None
        self._standing: dict[str, datetime] = {}
        self._overdue: dict[str, datetime] = {}
        self._since: Mapping[str, datetime] = {}
        self.broken: Mapping[str, str] = {}

    def rests(self, look: Look) -> bool:
        """There is nothing of which an invariant could be broken, or the last look is no 5 s ago."""
        late = look.next_due is not None and look.next_due < look.now - OVERDUE
        differ = len({beat.generation for beat in look.beats}) > 1
        known = self.broken or self._standing or self._overdue
        return self._waits(look.now) or not (known or late or differ or look.orphans or look.pending)

    def _waits(self, now: datetime) -> bool:
        return self._last is not None and timedelta(0) <= now - self._last < EVERY

    def tick(self, now: datetime) -> int:
        """Looks every 5 s; the number of broken invariants."""
        if self._waits(now):
            return len(self.broken)
        self._last = now
        with self._readable.queries() as queries:
            queues, nodes, overdue = queries.queues(), queries.nodes(), queries.overdue(now - OVERDUE)
        with self._store.read() as tx:
            orphans = tx.runs.orphaned(1)
        self._standing = {name: self._standing.get(name, now) for name in standing(queues, nodes)}
        stuck = [name for name, since in self._standing.items() if now - since > OVERDUE]
        self._overdue = {name: self._overdue.get(name, now) for name in overdue}
        late = [name for name, since in self._overdue.items() if now - since >= PATIENCE]
        found = judge(queues, nodes, late, orphans[0].id if orphans else None, stuck, now)
        for name in found.keys() - self.broken.keys():
            log.error("invariant_broken", invariant=name, detail=found[name])
            self._bus.publish("invariant.broken", invariant=name, detail=found[name])
        for name in self.broken.keys() - found.keys():
            log.info("invariant_restored", invariant=name)
        self._since = {name: self._since.get(name, now) for name in found}
        self.broken = found
        return len(found)

    def remarks(self) -> list[Remark]:
        """What is broken, since when it is known, and what to look at."""
        return [Remark(name, detail, self._since.get(name), COMMANDS.get(name)) for name, detail in self.broken.items()]


def judge(
    queues: list[QueueView],
    nodes: list[NodeView],
    overdue: list[str],
    orphan: str | None,
    stuck: list[str],
    now: datetime,
) -> dict[str, str]:
    """The broken invariants, by name, with one sentence each. `overdue`: jobs that should have been planned; `orphan`:
    a run whose node is gone; `stuck`: queues that have been standing for too long."""
    found: dict[str, str] = {}
    if overdue:
        found["overdue"] = f"{len(overdue)} job(s) are due for more than a minute and not planned: {_some(overdue)}"
    if orphan is not None:
        found["orphan"] = f"run {orphan} is RUNNING without a live node"
    live = [view.node for view in nodes if view.node.state in ("live", "stopping")]
    served_by_all = any(node.queues is None for node in live)
    served = {name for node in live for name in node.queues or ()}
    unserved = [q.queue.name for q in queues if q.ready and not served_by_all and q.queue.name not in served]
    if unserved:
        found["unserved_queue"] = f"no node serves queue {_some(unserved)}, and runs wait in it"
    if stuck and "unserved_queue" not in found:
        found["stuck_queue"] = f"runs wait in queue {_some(stuck)} although it has room"
    generations = {node.generation for node in live}
    if len(generations) > 1 and all(_settled(node.started_at, now) for node in live):
        found["generations"] = f"nodes work with different configurations: {sorted(generations)}"
    return found


def standing(queues: list[QueueView], nodes: list[NodeView]) -> list[str]:
    """Queues in which runs are ready although the queue and a node that serves it have room. At one look that is
    nothing: a run whose lock or time has come is ready until the next claim."""
    free = [view.node for view in nodes if view.node.state == "live" and view.running < view.node.slots]
    return [view.queue.name for view in queues if _has_room(view) and _serves(free, view.queue.name)]


def _has_room(view: QueueView) -> bool:
    room = view.queue.concurrency is None or view.running < view.queue.concurrency
    return room and view.queue.rate is None and view.ready > 0


def _serves(nodes: list[Node], queue: str) -> bool:
    return any(node.queues is None or queue in node.queues for node in nodes)


def _settled(started_at: datetime, now: datetime) -> bool:
    return now - started_at > OVERDUE


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
