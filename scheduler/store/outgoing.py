"""The pings that wait to be sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select, update

from scheduler.core.ping import NewPing, Ping
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.bulk import update_each
from scheduler.store.session import Session, chunks

_OTHERS = timedelta(minutes=1)
"""So long a node is given for its own pings before others send them: one that still sends the start of a run must be
the one that sends its end."""
_TABLE = t.outgoing_pings.c


@value_object
class SqlOutgoingPings:
    session: Session

    def put(self, pings: Sequence[NewPing]) -> None:
        """They wait to be sent, each after all that its job had waiting before."""
        rows = [{**asdict(one), "not_before": one.created_at, "tries": 0} for one in pings]
        for chunk in chunks(rows):
            self.session.write(t.outgoing_pings.insert(), chunk)

    def due(self, node: str, now: datetime, limit: int) -> list[Ping]:
        """The first of each job, if its time has come and this node may send it: its own and those of the dead at once,
        those of others when they have had a minute for it."""
        firsts = select(func.min(_TABLE.seq)).group_by(_TABLE.job)
        living = select(t.nodes.c.id).where(t.nodes.c.state.in_(["live", "stopping"]))
        mine = or_(_TABLE.node == node, _TABLE.node.not_in(living), _TABLE.created_at <= now - _OTHERS)
        query = (
            select(
                _TABLE.seq,
                _TABLE.job,
                _TABLE.run,
                _TABLE.attempt,
                _TABLE.signal,
                _TABLE.created_at,
                _TABLE.not_before,
                _TABLE.tries,
            )
            .where(_TABLE.seq.in_(firsts), _TABLE.not_before <= now, mine)
            .order_by(_TABLE.not_before, _TABLE.seq)
            .limit(limit)
        )
        return [Ping(**row._mapping) for row in self.session.rows(query)]

    def waiting(self, jobs: Collection[str]) -> set[str]:
        """Those of these jobs that have any waiting, due or not."""
        query = select(_TABLE.job).distinct().where(self.session.among(_TABLE.job, jobs))
        return set(self.session.rows(query).scalars())

    def take(self, ping: Ping, until: datetime) -> bool:
        """Nobody else sends it before `until`, when it is due again. False: somebody was first."""
        unchanged = (_TABLE.seq == ping.seq, _TABLE.not_before == ping.not_before)
        taking = update(t.outgoing_pings).where(*unchanged).values(not_before=until, tries=_TABLE.tries + 1)
        return self.session.write(taking) == 1

    def postpone(self, instants: Mapping[int, datetime]) -> None:
        """Sent again at these instants, by `seq`."""
        rows = [{"seq": seq, "not_before": at} for seq, at in instants.items()]
        update_each(self.session, t.outgoing_pings, ("seq",), rows)

    def remove(self, seqs: Collection[int]) -> None:
        if seqs:
            self.session.write(delete(t.outgoing_pings).where(self.session.among(_TABLE.seq, seqs)))

    def prune(self, before: datetime, most: int) -> dict[str, int]:
        """Forgets those from before that instant, and of a job all but the newest `most`; how many, by job."""
        old = select(_TABLE.seq, _TABLE.job).where(_TABLE.created_at < before)
        gone = dict(self.session.rows(old).all())
        counts = select(_TABLE.job).group_by(_TABLE.job).having(func.count() > most)
        for job in self.session.rows(counts).scalars().all():
            newest_first = select(_TABLE.seq, _TABLE.job).where(_TABLE.job == job).order_by(_TABLE.seq.desc())
            gone |= dict(self.session.rows(newest_first.offset(most)).all())
        self.remove(list(gone))
        forgotten: dict[str, int] = {}
        for job in gone.values():
            forgotten[job] = forgotten.get(job, 0) + 1
        return forgotten
