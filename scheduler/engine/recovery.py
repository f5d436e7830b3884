"""Recovery: what a starting daemon does about the runs that its predecessor held. Everything of them is gone by now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import structlog

from scheduler.core.execution import Attempts, Bus
from scheduler.core.model import Run
from scheduler.core.outcome import Outcome
from scheduler.core.ports import Store
from scheduler.engine.in_force import InForce
from scheduler.engine.orphans import close_known, close_orphans

log = structlog.get_logger("engine")


def predecessors(store: Store, former: str | None) -> dict[str, list[Run]]:
    """The nodes that this daemon succeeds and that were not stopped, with the runs they hold: whoever held this state
    directory, and on SQLite every node, because holding the database's lock means that all are gone."""
    with store.read() as tx:
        nodes = [node for node in tx.nodes.all() if node.state not in ("dead", "stopped")]
        mine = [node.id for node in nodes if store.kind == "sqlite" or node.id == former]
        return {node: tx.runs.running(node) for node in mine}


def recover(
    store: Store,
    in_force: InForce,
    bus: Bus,
    attempts: Attempts,
    nodes: Collection[str],
    known: Mapping[tuple[str, int], Outcome],
    now: datetime,
    boottime: float,
) -> int:
    """Ships what the runs of `nodes` had written, declares these nodes dead, settles their runs (with what is `known`
    of them, else as lost); the number of runs. `boottime` is `now` by CLOCK_BOOTTIME. After one that failed midway it
    can be done again: nodes of which runs are `known` are not dead before those are settled."""
    left = attempts.left_behind()
    if left:
        outputs, words = attempts.outputs(left), attempts.last_words(left)
        with store.begin() as tx:
            tx.runs.put_output(outputs)
            tx.runs.report(words)
    closed = close_known(store, in_force, bus, now, nodes, known, boottime)
    closed += close_orphans(store, in_force, bus, now, of_node=lambda node: node in nodes)
    attempts.forget(left)
    if closed:
        log.info("recovered", runs=closed, known=len(known), nodes=len(nodes))
    return closed
