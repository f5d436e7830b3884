"""Closes the runs of nodes that are dead or stopped: an attempt of which nothing is known ends as lost, and its run
goes on elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from scheduler.core.durations import format_duration
from scheduler.core.execution import Bus
from scheduler.core.ids import short
from scheduler.core.lifecycle import settle, timed
from scheduler.core.model import FailReason, Node, Run
from scheduler.core.outcome import Failed, Outcome, Succeeded
from scheduler.core.ports import Store, Transaction
from scheduler.engine.aftermath import Aftermath, announce_settled, settle_all
from scheduler.engine.flips import publish_flips
from scheduler.engine.in_force import InForce

BATCH = 500

Known = Mapping[tuple[str, int], Outcome]
"""What is known to have become of (run, attempt)."""


def close_known(
    store: Store,
    in_force: InForce,
    bus: Bus,
    now: datetime,
    nodes: Collection[str],
    known: Known,
    boottime: float,
) -> int:
    """Declares `nodes` dead and settles, in the same transaction, their runs of which it is `known` what became of
    them: nobody finds one of these with a dead node and takes it for lost. The number of those runs. `boottime` is
    `now` on the clock of their spans (CLOCK_BOOTTIME, seconds)."""
    with store.begin() as tx:
        beats = {node.id: node.beat for node in tx.nodes.all()}
        for node in sorted(beats.keys() & set(nodes)):
            tx.nodes.declare_dead(node, beats[node], now)
        held = [run for node in sorted(nodes) for run in tx.runs.running(node)]
        told = _judgeable(tx, in_force, [run for run in held if (run.id, run.attempt) in known], known)
        decided = []
        for run in told:
            outcome = known[run.id, run.attempt]
            settlement = settle(run, outcome, in_force.job(run.job), now, 0.0)
            decided.append(timed(settlement, outcome.span, now, boottime))
        # However many they are, at once: the jobs of a second part would be locked after the runs of the first.
        after = settle_all(tx, in_force, decided, now, orphans=True)
    _tell(bus, told, after, known, now)
    return len(after.runs)


def close_orphans(
    store: Store, in_force: InForce, bus: Bus, now: datetime, of_node: Callable[[str], bool] = lambda _: True
) -> int:
    """Settles every RUNNING run of dead or stopped nodes as lost; the number."""
    closed = 0
    while True:
        with store.read() as tx:
            if not tx.runs.orphaned(1):
                return closed
        with store.begin() as tx:
            orphans = [run for run in tx.runs.orphaned(BATCH) if run.node is not None and of_node(run.node)]
            orphans = _judgeable(tx, in_force, orphans, {})
            if not orphans:
                return closed
            nodes = {node.id: node for node in tx.nodes.all()}
            outcomes = [_lost(nodes.get(run.node or ""), now) for run in orphans]
            decided = [
                settle(run, outcome, in_force.job(run.job), now, 0.0)
                for run, outcome in zip(orphans, outcomes, strict=True)
            ]
            after = settle_all(tx, in_force, decided, now, orphans=True)
        _tell(bus, orphans, after, {}, now)
        closed += len(after.runs)
        if not after.runs or len(orphans) < BATCH:
            return closed


def _tell(bus: Bus, before: Sequence[Run], after: Aftermath, known: Known, now: datetime) -> None:
    """After the commit. What is not `known` is lost."""
    formerly = {run.id: run for run in before}
    publish_flips(bus, after.flipped)
    for run in after.runs:
        former = formerly[run.id]
        told = known.get((run.id, former.attempt))
        lost = told is None or (isinstance(told, Failed) and told.reason is FailReason.LOST)
        if lost:
            bus.publish("run.lost", run=run.id, job=run.job, attempt=former.attempt, node=former.node)
        announce_settled(bus, run, now, lost_with=former.node if lost else None)


def _lost(node: Node | None, now: datetime) -> Failed:
    """What is said of an attempt that ended with its node."""
    if node is None:
        return Failed(FailReason.LOST, "its node died before it ended")
    what = "was stopped" if node.state == "stopped" else "died"
    text = f"its node {what} before it ended: {short(node.id)} on {node.host}"
    ended = node.lease is not None and node.beat_at is not None and now - node.beat_at >= node.lease
    if node.state == "dead" and ended and node.lease is not None:
        text += f", whose lease of {format_duration(node.lease)} had ended"
    return Failed(FailReason.LOST, text)


def _judgeable(tx: Transaction, in_force: InForce, orphans: list[Run], known: Known) -> list[Run]:
    """Without the runs of jobs that this node has not loaded: what follows their loss is not known here, only what
    follows their success."""
    unknown = {run.job for run in orphans if in_force.job(run.job) is None}
    if not unknown:
        return orphans
    present = {name for name, state in tx.jobs.states(unknown).items() if state.removed_at is None}
    return [run for run in orphans if run.job not in present or isinstance(known.get((run.id, run.attempt)), Succeeded)]
