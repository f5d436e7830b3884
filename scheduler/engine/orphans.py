"""Closes the runs of nodes that are dead or stopped: each attempt ends as lost, and its run goes on elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from scheduler.core.durations import format_duration
from scheduler.core.execution import Bus
from scheduler.core.ids import short
from scheduler.core.lifecycle import settle, timed
from scheduler.core.model import FailReason, Node, Run
from scheduler.core.outcome import Failed, Outcome, Succeeded
from scheduler.core.ports import Store, Transaction
from scheduler.engine.aftermath import announce_settled, settle_all
from scheduler.engine.flips import publish_flips
from scheduler.engine.in_force import InForce

BATCH = 500


def close_orphans(
    store: Store,
    in_force: InForce,
    bus: Bus,
    now: datetime,
    known: Mapping[tuple[str, int], Outcome] | None = None,
    of_node: Callable[[str], bool] = lambda _: True,
    boottime: float = 0.0,
) -> int:
    """Settles every RUNNING run of dead or stopped nodes; the number.

    `known`: what is known to have become of (run, attempt), from what a former supervisor left; only the rest is lost.
    `boottime` is `now` on the clock of their spans (CLOCK_BOOTTIME, seconds).
    """
    closed = 0
    known = known or {}
    while True:
        with store.read() as tx:
            if not tx.runs.orphaned(1):
                return closed
        with store.begin() as tx:
            orphans = [run for run in tx.runs.orphaned(BATCH) if run.node is not None and of_node(run.node)]
            orphans = _judgeable(tx, in_force, orphans, known)
            if not orphans:
                return closed
            decided = []
            nodes = {node.id: node for node in tx.nodes.all()}
            for run in orphans:
                outcome = known.get((run.id, run.attempt)) or _lost(nodes.get(run.node or ""), now)
                settlement = settle(run, outcome, in_force.job(run.job), now, 0.0)
                decided.append(timed(settlement, outcome.span, now, boottime))
            after = settle_all(tx, in_force, decided, now, orphans=True)
        before = {run.id: run for run in orphans}
        publish_flips(bus, after.flipped)
        for run in after.runs:
            former = before[run.id]
            told = known.get((run.id, former.attempt))
            lost = told is None or (isinstance(told, Failed) and told.reason is FailReason.LOST)
            if lost:
                bus.publish("run.lost", run=run.id, job=run.job, attempt=former.attempt, node=former.node)
            announce_settled(bus, run, now, lost_with=former.node if lost else None)
        closed += len(after.runs)
        if not after.runs or len(orphans) < BATCH:
            return closed


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


def _judgeable(
    tx: Transaction, in_force: InForce, orphans: list[Run], known: Mapping[tuple[str, int], Outcome]
) -> list[Run]:
    """Without the runs of jobs that this node has not loaded: what follows their loss is not known here, only what
    follows their success."""
    unknown = {run.job for run in orphans if in_force.job(run.job) is None}
    if not unknown:
        return orphans
    present = {name for name, state in tx.jobs.states(unknown).items() if state.removed_at is None}
    return [run for run in orphans if run.job not in present or isinstance(known.get((run.id, run.attempt)), Succeeded)]
