"""What queues can still take, counted while their rows are held, so that no two nodes count the same place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select, update

from scheduler.store import tables as t
from scheduler.store.session import Session, listed


@dataclass(slots=True)
class Place:
    """What a queue whose row is held can still take. None: no limit."""

    name: str
    tokens: float
    rate: float | None
    room: int | None

    @property
    def full(self) -> bool:
        return (self.room is not None and self.room <= 0) or (self.rate is not None and self.tokens < 1)

    def take(self) -> bool:
        if self.full:
            return False
        if self.room is not None:
            self.room -= 1
        if self.rate is not None:
            self.tokens -= 1
        return True


@cache
def _queues(kind: str, skip_busy: bool) -> Select[Any]:
    query = select(t.queues).where(listed(kind, t.queues.c.name)).order_by(t.queues.c.name)
    return query.with_for_update(skip_locked=skip_busy)


@cache
def _running(kind: str) -> Select[Any]:
    count = select(t.runs.c.queue, func.count()).where(t.IS_RUNNING, listed(kind, t.runs.c.queue))
    return count.group_by(t.runs.c.queue)


def lock_queues(session: Session, names: list[str], skip_busy: bool, now: datetime) -> dict[str, Place]:
    """What each of these queues can still take; nobody else claims from them until the transaction ends."""
    rows = session.rows(_queues(session.kind, skip_busy), listed=session.listing(names)).all()
    limited = [row.name for row in rows if row.concurrency is not None]
    running: dict[str, int] = {}
    if limited:
        running = dict(session.rows(_running(session.kind), listed=session.listing(limited)).all())
    places = {}
    for row in rows:
        tokens = row.tokens
        if row.rate is not None:
            refill = max(0.0, (now - row.refilled_at).total_seconds()) * row.rate
            tokens = min(float(row.burst), tokens + refill)
        room = None if row.concurrency is None else row.concurrency - running.get(row.name, 0)
        places[row.name] = Place(row.name, tokens, row.rate, room)
    return places


def pay(session: Session, places: Mapping[str, Place], before: Mapping[str, float], now: datetime) -> None:
    """Takes from the queues the tokens that were taken since they were as `before`."""
    session.write(
        update(t.queues)
        .where(t.queues.c.name == bindparam("queue"))
        .values(tokens=bindparam("rest"), refilled_at=bindparam("at")),
        [
            {"queue": name, "rest": place.tokens, "at": now}
            for name, place in places.items()
            if place.tokens != before[name]
        ],
    )
