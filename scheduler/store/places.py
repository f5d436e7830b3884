"""What queues can still take, counted while their rows are held, so that no two nodes count the same place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Row, Select, bindparam, literal, select, update

from scheduler.store import tables as t
from scheduler.store.session import Session, listed

SET_BACK = timedelta(minutes=1)
"""A bucket that was refilled so much later than now was refilled before the clock was set back. Less only means that
others read the clock later and were here first: a tick works with one instant, however long it takes."""


@dataclass(slots=True)
class Place:
    """What a queue whose row is held can still take. None: no limit. `room` is what its `concurrency` leaves, once the
    runs in it were counted; `counted_to` is the instant up to which its tokens are refilled, `changed` says that its
    row must be written."""

    name: str
    tokens: float
    counted_to: datetime
    rate: float | None
    concurrency: int | None
    room: int | None
    changed: bool

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
            self.changed = True
        return True

    def put_back(self) -> None:
        """What was taken last is not used."""
        if self.room is not None:
            self.room += 1
        if self.rate is not None:
            self.tokens += 1


def refill(row: Row[Any], now: datetime) -> tuple[float, datetime]:
    """The tokens of a queue that has a rate, 0 to its burst, and the instant up to which they are counted. No time
    counts twice: for whoever comes with an instant that is older than the last one, nothing is refilled. After the
    clock was set back the count goes on from `now`: nothing is given again, and nobody waits until the clock is where
    it was."""
    if row.refilled_at - now > SET_BACK:
        return row.tokens, now
    to = max(now, row.refilled_at)
    return min(float(row.burst), row.tokens + (to - row.refilled_at).total_seconds() * row.rate), to


def until_token(row: Row[Any], now: datetime) -> float:
    """Seconds until a queue that has a rate has a token; 0.0: it has one."""
    tokens, counted_to = refill(row, now)
    return 0.0 if tokens >= 1 else (counted_to - now).total_seconds() + (1 - tokens) / row.rate


SOME_READY = (
    select(literal(1)).where(t.READY, t.runs.c.queue == t.queues.c.name).limit(1).scalar_subquery().is_not(None)
)
"""In a query on queues: a run waits for nothing but a place there. One seek for each queue: a subquery with a limit is
never made a join over all that is ready."""


@cache
def _queues(kind: str, skip_busy: bool, *, narrowed: bool) -> Select[Any]:
    query = select(t.queues).where(SOME_READY).order_by(t.queues.c.name)
    if narrowed:
        query = query.where(listed(kind, t.queues.c.name))
    return query.with_for_update(skip_locked=skip_busy)


_PAID = (
    update(t.queues)
    .where(t.queues.c.name == bindparam("queue"))
    .values(tokens=bindparam("rest"), refilled_at=bindparam("at"))
)


def lock_queues(session: Session, names: Collection[str] | None, skip_busy: bool, now: datetime) -> dict[str, Place]:
    """What each of these queues (None: of all) in which runs are ready can still take; nobody else claims from them
    until the transaction ends."""
    asked = {} if names is None else {"listed": session.listing(names)}
    places = {}
    for row in session.rows(_queues(session.kind, skip_busy, narrowed=names is not None), **asked):
        tokens, counted_to = (row.tokens, row.refilled_at) if row.rate is None else refill(row, now)
        # From where it is counted after the clock was set back must be known to whoever comes next.
        anew = counted_to < row.refilled_at
        places[row.name] = Place(row.name, tokens, counted_to, row.rate, row.concurrency, row.concurrency, changed=anew)
    return places


def in_turn(places: Iterable[Place], served: Sequence[str]) -> list[Place]:
    """First those that are not among `served`, then those that were served longest ago (the last of `served` was served
    last): so a place that becomes free goes to every queue in turn, however many wait in one of them."""
    last = {name: number for number, name in enumerate(served)}
    return sorted(places, key=lambda place: last.get(place.name, -1))


def pay(session: Session, places: Iterable[Place]) -> None:
    """Writes down the tokens that were taken from these queues."""
    session.write(
        _PAID,
        [{"queue": one.name, "rest": one.tokens, "at": one.counted_to} for one in places if one.changed],
    )


def moved(counted_to: datetime, step: timedelta, now: datetime) -> datetime:
    """Up to where tokens are counted after the clock was set by `step` and shows `now`: so that the step neither gives
    tokens nor takes time. What was counted since, by the new time, stays."""
    if step < timedelta(0) and now - SET_BACK <= counted_to <= now:
        return counted_to
    return min(counted_to + step, max(counted_to, now))
