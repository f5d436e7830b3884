"""Notifications and channels as people are shown them."""

from __future__ import annotations

from sqlalchemy import func, select

from scheduler.core.notification import ChannelView, Fate, Sent
from scheduler.core.notification_queries import NotificationFilter
from scheduler.store import tables as t
from scheduler.store.notifications import standing_of
from scheduler.store.session import Session

_TABLE = t.notifications.c
_WAITING = (
    select(_TABLE.channel, func.count().label("waiting"), func.min(_TABLE.created_at).label("oldest"))
    .where(t.IS_WAITING)
    .group_by(_TABLE.channel)
)


def notifications(session: Session, which: NotificationFilter, limit: int) -> list[Sent]:
    query = select(t.notifications).order_by(_TABLE.id.desc()).limit(limit)
    if which.channel:
        query = query.where(_TABLE.channel == which.channel)
    if which.job:
        query = query.where(_TABLE.job == which.job)
    if which.fates:
        query = query.where(_TABLE.fate.in_([fate.value for fate in which.fates]))
    return [
        Sent(
            row.id,
            row.channel,
            row.kind,
            row.job,
            row.run,
            row.since,
            row.created_at,
            Fate(row.fate),
            row.attempts,
            row.next_at if row.fate == Fate.WAITING.value else None,
            row.settled_at,
            row.error,
            row.together,
        )
        for row in session.rows(query)
    ]


def channels(session: Session) -> list[ChannelView]:
    waiting = {row.channel: row for row in session.rows(_WAITING)}
    rows = session.rows(select(t.channels).order_by(t.channels.c.name)).all()
    return [
        ChannelView(
            row.name,
            standing_of(row),
            waiting[row.name].waiting if row.name in waiting else 0,
            waiting[row.name].oldest if row.name in waiting else None,
        )
        for row in rows
    ]
