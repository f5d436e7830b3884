"""Notifications: what waits for which channel, and which node sends it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, bindparam, delete, or_, select, update

from scheduler.core.notification import Fate, Pace, Result, Standing, Waiting
from scheduler.core.tiding import Entry, Kind, Tiding
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.session import Session, chunks

_TABLE, _CHANNELS = t.notifications.c, t.channels.c
# What a node holds that has stopped or died is free at once.
_LIVE = (
    select(t.nodes.c.id).where(t.nodes.c.id == _CHANNELS.held_by, t.nodes.c.state.in_(("live", "stopping"))).exists()
)
_FREE = or_(_CHANNELS.held_until.is_(None), _CHANNELS.held_until <= bindparam("now"), ~_LIVE)
_OPEN = or_(
    _CHANNELS.name.is_(None), and_(_FREE, or_(_CHANNELS.not_before.is_(None), _CHANNELS.not_before <= bindparam("now")))
)
_DUE = (
    select(_TABLE.channel)
    .distinct()
    .select_from(t.notifications.outerjoin(t.channels, _CHANNELS.name == _TABLE.channel))
    .where(t.IS_WAITING, _TABLE.next_at <= bindparam("now"), _OPEN)
)


@value_object
class SqlNotifications:
    session: Session

    def put(self, entries: Sequence[Entry], now: datetime) -> int:
        """They wait from now on; how many are new: a channel is told of a key once, for ever."""
        rows = [
            {
                "channel": one.channel,
                "key": one.tiding.key,
                "kind": one.tiding.kind.value,
                "job": one.tiding.job,
                "run": one.tiding.run,
                "since": one.tiding.since,
                "detail": dict(one.tiding.detail),
                "created_at": now,
                "fate": Fate.WAITING.value,
                "attempts": 0,
                "next_at": now,
                "together": 1,
            }
            for one in entries
        ]
        insert = self.session.insert(t.notifications).on_conflict_do_nothing(index_elements=["channel", "key"])
        return sum(self.session.write(insert, chunk) for chunk in chunks(rows))

    def due(self, now: datetime) -> list[str]:
        """The channels for which something waits that is due, and that nobody is sending to."""
        return sorted(self.session.rows(_DUE, now=now).scalars())

    def take(self, channel: str, node: str, now: datetime, until: datetime) -> Standing | None:
        """The channel is this node's until then, or until it gives it back; None: it is another's."""
        fresh = self.session.insert(t.channels).on_conflict_do_nothing(index_elements=["name"])
        self.session.write(fresh, {"name": channel, "messages": 0.0})
        taking = update(t.channels).where(_CHANNELS.name == bindparam("which"), _FREE)
        values = {"which": channel, "now": now, "node": node, "until": until}
        if not self.session.write(taking.values(held_by=bindparam("node"), held_until=bindparam("until")), values):
            return None
        return standing_of(self.session.rows(select(t.channels).where(_CHANNELS.name == channel)).one())

    def waiting(self, channel: str, limit: int) -> list[Waiting]:
        """What waits for the channel, due or not, oldest first."""
        query = select(t.notifications).where(t.IS_WAITING, _TABLE.channel == channel).order_by(_TABLE.id).limit(limit)
        return [Waiting(row.id, tiding_of(row), row.created_at, row.attempts) for row in self.session.rows(query)]

    def give_back(self, channel: str, node: str, standing: Standing, results: Sequence[Result], now: datetime) -> bool:
        """Writes what became of them and frees the channel. False, and nothing is written, if it is another node's by
        now."""
        freeing = update(t.channels).where(_CHANNELS.name == channel, _CHANNELS.held_by == node)
        values = {
            "held_by": None,
            "held_until": None,
            "messages": standing.pace.messages,
            "paced_at": standing.pace.at,
            "not_before": standing.not_before,
            "failing_since": standing.failing_since,
            "error": standing.error,
            "answered_at": standing.answered_at,
        }
        if not self.session.write(freeing.values(values)):
            return False
        writing = (
            update(t.notifications)
            .where(_TABLE.id == bindparam("which"))
            .values(
                fate=bindparam("fate"),
                attempts=_TABLE.attempts + 1,
                next_at=bindparam("next_at"),
                settled_at=bindparam("settled_at"),
                error=bindparam("error"),
                together=bindparam("together"),
            )
        )
        rows = [
            {
                "which": one.id,
                "fate": one.fate.value,
                "next_at": one.next_at,
                "settled_at": None if one.fate is Fate.WAITING else now,
                "error": one.error,
                "together": one.together,
            }
            for one in results
        ]
        for chunk in chunks(rows):
            self.session.write(writing, chunk)
        return True

    def hasten(self, channel: str, now: datetime) -> int:
        """The channel has taken something: what waits for it is due now; how many wait."""
        well = {"not_before": None, "failing_since": None, "error": None}
        self.session.write(update(t.channels).where(_CHANNELS.name == channel).values(well))
        return self.session.write(
            update(t.notifications).where(t.IS_WAITING, _TABLE.channel == channel).values(next_at=now)
        )

    def abandon(self, channels: Collection[str], reason: str, now: datetime) -> list[str]:
        """Gives up what waits for any other channel than these; the names of those channels."""
        waiting = select(_TABLE.channel).distinct().where(t.IS_WAITING)
        gone = sorted(set(self.session.rows(waiting).scalars()) - set(channels))
        if gone:
            concerned = and_(t.IS_WAITING, self.session.among(_TABLE.channel, gone))
            values = {"fate": Fate.FAILED.value, "settled_at": now, "error": reason}
            self.session.write(update(t.notifications).where(concerned).values(values))
        return gone

    def prune(self, before: datetime, limit: int) -> int:
        """Forgets up to `limit` that were settled before that."""
        query = select(_TABLE.id).where(_TABLE.settled_at.is_not(None), _TABLE.settled_at < before)
        ids = list(self.session.rows(query.order_by(_TABLE.settled_at).limit(limit)).scalars())
        return self.session.write(delete(t.notifications).where(self.session.among(_TABLE.id, ids))) if ids else 0


def tiding_of(row: Row[Any]) -> Tiding:
    return Tiding(Kind(row.kind), row.job, row.since, row.key, row.run, row.detail)


def standing_of(row: Row[Any]) -> Standing:
    return Standing(Pace(row.messages, row.paced_at), row.not_before, row.failing_since, row.error, row.answered_at)
