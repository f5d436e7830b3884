"""Queues: who is before whom, and the tokens of their buckets."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import bindparam, func, literal, select, update

from scheduler.core.errors import NotFound, Refused
from scheduler.core.ports import Line
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.places import SOME_READY, refill, until_token
from scheduler.store.queries import AHEAD
from scheduler.store.session import Session

_IN_QUEUE = t.runs.c.queue == bindparam("of")
_READY = select(literal(1)).where(t.READY, _IN_QUEUE, t.runs.c.priority >= bindparam("least")).limit(AHEAD)
_AHEAD = select(func.count()).select_from(_READY.subquery())
_RUNNING = select(func.count()).where(t.IS_RUNNING, _IN_QUEUE)
_LINE = select(_AHEAD.scalar_subquery(), _RUNNING.scalar_subquery())
_AWAITED = select(t.queues).where(t.queues.c.rate.is_not(None), SOME_READY)


@value_object
class SqlQueues:
    session: Session

    def line(self, queue: str, priority: int) -> Line:
        return Line(*self.session.connection.execute(_LINE, {"of": queue, "least": priority}).one())

    def take(self, queue: str, now: datetime) -> float | None:
        row = self.session.rows(select(t.queues).where(t.queues.c.name == queue).with_for_update()).first()
        if row is None:
            raise NotFound(f"no queue {queue!r}", hint="`schedctl show` tells which queue a job uses")
        if row.rate is None:
            raise Refused(
                f"queue {queue} has no rate", hint=f"write  queues: {{{queue}: {{rate: 120/m}}}}  in jobs.yaml"
            )
        tokens, counted_to = refill(row, now)
        taken = tokens >= 1
        if taken or counted_to < row.refilled_at:
            rest = tokens - 1 if taken else tokens
            values = {"tokens": rest, "refilled_at": counted_to}
            self.session.write(update(t.queues).where(t.queues.c.name == queue).values(values))
        return None if taken else until_token(row, now)

    def next_token(self, queues: Collection[str] | None, now: datetime) -> float | None:
        rows = self.session.rows(_AWAITED)
        waits = [until_token(row, now) for row in rows if queues is None or row.name in queues]
        return min((wait for wait in waits if wait > 0), default=None)
