"""Misses that somebody knows of."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import delete, select

from scheduler.core.model import Ack
from scheduler.store import tables as t
from scheduler.store.session import Session


def put_ack(session: Session, ack: Ack, settled: datetime) -> None:
    """What a success has settled since needs no excuse any more."""
    session.write(delete(t.acks).where(t.acks.c.job == ack.job, t.acks.c.last <= settled))
    row = {
        "job": ack.job,
        "first": ack.first,
        "last": ack.last,
        "at": ack.at,
        "reason": ack.reason,
        "author": ack.author,
    }
    session.write(t.acks.insert(), row)


def acks_of(session: Session, jobs: Collection[str], since: datetime) -> list[Ack]:
    """Those that reach past `since`, by their beginning."""
    query = (
        select(t.acks)
        .where(session.among(t.acks.c.job, jobs), t.acks.c.last > since)
        .order_by(t.acks.c.first, t.acks.c.id)
    )
    return [Ack(row.job, row.first, row.last, row.at, row.reason, row.author) for row in session.rows(query)]
