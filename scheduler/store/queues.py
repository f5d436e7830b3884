"""Queues: who is before whom, and the tokens of their buckets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, literal, select, update

from scheduler.core.errors import NotFound, Refused
from scheduler.core.ports import Line
from scheduler.store import tables as t
from scheduler.store.queries import AHEAD
from scheduler.store.session import Session


@dataclass(frozen=True, slots=True)
class SqlQueues:
    session: Session

    def line(self, queue: str, priority: int) -> Line:
        ready = select(literal(1)).where(t.READY, t.runs.c.queue == queue, t.runs.c.priority >= priority)
        ahead = self.session.rows(select(func.count()).select_from(ready.limit(AHEAD).subquery())).scalar_one()
        running = select(func.count()).where(t.IS_RUNNING, t.runs.c.queue == queue)
        return Line(ahead, self.session.rows(running).scalar_one())

    def take(self, queue: str, now: datetime) -> float | None:
        row = self.session.rows(select(t.queues).where(t.queues.c.name == queue).with_for_update()).first()
        if row is None:
            raise NotFound(f"no queue {queue!r}", hint="`schedctl show` tells which queue a job uses")
        if row.rate is None:
            raise Refused(
                f"queue {queue} has no rate", hint=f"write  queues: {{{queue}: {{rate: 120/m}}}}  in jobs.yaml"
            )
        refill = max(0.0, (now - row.refilled_at).total_seconds()) * row.rate
        tokens = min(float(row.burst), row.tokens + refill)
        if tokens < 1:
            wait: float = (1 - tokens) / row.rate
            return wait
        taken = update(t.queues).where(t.queues.c.name == queue).values(tokens=tokens - 1, refilled_at=now)
        self.session.write(taken)
        return None
