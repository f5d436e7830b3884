"""Nodes and their beats."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, literal, select, update

from scheduler.core.hints import Word
from scheduler.core.model import Node
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.moved import refuse_moved_meanwhile
from scheduler.store.rows import node_of
from scheduler.store.session import Session
from scheduler.store.types import UtcInstant

_HOLDING = ("live", "stopping")
_STATE = select(t.nodes.c.state).where(t.nodes.c.id == bindparam("node"))
# A beat passes those that hold the row, and they it: a node that always has a transaction open, or whose connection
# broke in the midst of one, must not lose its lease by that. Whoever takes its right away waits for them, and so does
# whoever must see all that they did.
_HELD = _STATE.with_for_update(read=True, key_share=True)
_ALONE = _STATE.with_for_update()
_BEFORE = {"live": ("live",), "stopping": _HOLDING, "stopped": (*_HOLDING, "stopped")}


@value_object
class SqlNodes:
    session: Session

    def hold(self, node: str) -> bool:
        """Until the transaction ends nobody takes its right away. False: it is not live, and must not plan or claim."""
        return bool(self.session.rows(_HELD, node=node).scalar() == "live")

    def hold_alone(self, node: str) -> None:
        """Waits for all that hold it, those included of whose end nobody heard: what is read after this shows what they
        did. Until the transaction ends nobody else holds it, and it does not beat."""
        self.session.rows(_ALONE, node=node)

    def register(self, node: Node, now: datetime) -> None:
        """StartError if the ledger was moved elsewhere meanwhile."""
        self.session.write(
            t.nodes.insert(),
            {
                "id": node.id,
                "host": node.host,
                "pid": node.pid,
                "version": node.version,
                "started_at": node.started_at,
                "lease": None if node.lease is None else node.lease.total_seconds(),
                "slots": node.slots,
                "queues": None if node.queues is None else list(node.queues),
                "state": node.state,
                "beat": node.beat,
                "beat_at": now,
                "generation": node.generation,
                "clock_offset": node.clock_offset,
            },
        )
        refuse_moved_meanwhile(self.session.connection)

    def renew(
        self, node: str, now: datetime, *, generation: int, clock_offset: float = 0.0, word: Word | None = None
    ) -> bool:
        """Raises the beat. False: this node was declared dead or stopped; it holds nothing any more."""
        values = {"beat": t.nodes.c.beat + 1, "beat_at": now, "generation": generation, "clock_offset": clock_offset}
        if word is not None:
            values |= {"hints": word.hints, "aside": word.aside}
        where = (t.nodes.c.id == node, t.nodes.c.state.in_(_HOLDING))
        return self.session.write(update(t.nodes).where(*where).values(values)) == 1

    def mark(self, node: str, state: str, now: datetime) -> bool:
        """live → stopping → stopped, never back. False if the node is dead, gone or further already. Waits for those
        that hold the node."""
        self.hold_alone(node)
        where = (t.nodes.c.id == node, t.nodes.c.state.in_(_BEFORE[state]))
        values: dict[str, Any] = {"state": state, "beat_at": now}
        if state == "stopping":
            values["leaving_at"] = func.coalesce(t.nodes.c.leaving_at, literal(now, UtcInstant()))
        return self.session.write(update(t.nodes).where(*where).values(values)) == 1

    def declare_dead(self, node: str, beat: int, now: datetime) -> bool:
        """True if its beat is still `beat` and it was not stopped: from now on it holds nothing. Waits for those that
        hold the node."""
        self.hold_alone(node)
        where = (t.nodes.c.id == node, t.nodes.c.beat == beat, t.nodes.c.state.in_(_HOLDING))
        return self.session.write(update(t.nodes).where(*where).values(state="dead")) == 1

    def all(self) -> list[Node]:
        """By start."""
        return [node_of(row) for row in self.session.rows(select(t.nodes).order_by(t.nodes.c.started_at, t.nodes.c.id))]

    def prune(self, before: datetime) -> int:
        """Forgets nodes that are dead or stopped, whose last beat lies before `before` and that hold no run."""
        holds = exists().where(t.IS_RUNNING, t.runs.c.node == t.nodes.c.id)
        where = (t.nodes.c.state.in_(("dead", "stopped")), t.nodes.c.beat_at < before, ~holds)
        return self.session.write(delete(t.nodes).where(*where))
