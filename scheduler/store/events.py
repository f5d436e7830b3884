"""The inbox: events as they come in, and as scans look for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    exists,
    func,
    literal,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.expression import TableValuedAlias

from scheduler.core.compensator import Window
from scheduler.core.event import Event, Known, NewEvent, Reject, Via
from scheduler.core.value_object import value_object
from scheduler.store import forgetting
from scheduler.store import rejects as rejects_kept
from scheduler.store import tables as t
from scheduler.store.bulk import Owned, insert_all, insert_new, update_each
from scheduler.store.event_rows import BARE, bare, event_row, pairs
from scheduler.store.promote import distinct
from scheduler.store.session import Session
from scheduler.store.unlisted import unlisted

BYTES = 8 << 20
"""Of bodies in one statement, unless a single one is larger."""

Key = tuple[str, str]
"""(source, id)"""

_E = t.events.c
_GIVEN = text("SELECT seq FROM sqlite_sequence WHERE name = 'events'")


@value_object
class SqlEvents:
    session: Session

    def add(self, events: Sequence[NewEvent]) -> dict[Key, tuple[int, bool]]:
        """Stores those that are new, in this order; (seq, whether it is new) by (source, id). Of one that is there
        only `webhook_at`, `scan_at` and `duplicates` change. The unique index decides, never a look before."""
        told: dict[Key, list[NewEvent]] = {}
        for event in events:
            told.setdefault((event.source, event.id), []).append(event)
        if not told:
            return {}
        numbers = dict(zip(told, self._numbers(len(told)), strict=True))
        # in the order of keys wherever somebody else may be inserting the same ones
        keys = list(told) if self.session.kind == "sqlite" else sorted(told)
        rows = [event_row(numbers[key], told[key]) for key in keys]
        first, *others = _by_size([_body(seq, told[key][0]) for key, seq in numbers.items()])
        new = insert_new(self.session, t.events, "seq", rows, Owned(t.event_bodies, "event", first))
        for some in others:
            insert_all(self.session, t.event_bodies, [body for body in some if body["event"] in new])
        found = {key: (seq, True) for key, seq in numbers.items() if seq in new}
        if len(new) < len(told):
            found |= self._tell_again({key: told[key] for key in told if key not in found})
        for job, seqs, at in _listed(told, found):
            self.listed(job, seqs, at)
        return {key: found[key] for key in told}

    def _numbers(self, count: int) -> Sequence[int]:
        """The next numbers of rows, so that each event's is known whatever the index refuses."""
        if self.session.kind == "sqlite":
            last = self.session.connection.execute(_GIVEN).scalar() or 0
            return range(last + 1, last + count + 1)
        number = func.nextval(func.pg_get_serial_sequence("events", "seq"))
        query = select(number).select_from(func.generate_series(1, count))
        return sorted(self.session.rows(query).scalars())

    def _tell_again(self, told: Mapping[Key, list[NewEvent]]) -> dict[Key, tuple[int, bool]]:
        """Notes further webhooks of events that are there."""
        rows: list[Row[Any]] = []
        for source, keys in groupby(sorted(told), key=lambda key: key[0]):
            columns = (_E.seq, _E.source, _E.id, _E.webhook_at)
            rows += self.session.rows(self._named(source, [key[1] for key in keys], columns, lock=True)).all()
        webhooks = {row.seq: [one for one in told[row.source, row.id] if one.via is Via.WEBHOOK] for row in rows}
        first = {row.seq: webhooks[row.seq] for row in rows if row.webhook_at is None and webhooks[row.seq]}
        again: dict[int, list[int]] = {}
        for seq, each in webhooks.items():
            again.setdefault(len(each) - (seq in first), []).append(seq)
        for times, seqs in sorted(again.items()):
            if times:
                these = self.session.among(_E.seq, seqs)
                self.session.write(update(t.events).where(these).values(duplicates=_E.duplicates + times))
        came = [{"seq": seq, "webhook_at": each[0].received_at} for seq, each in sorted(first.items())]
        update_each(self.session, t.events, ("seq",), came)
        return {(row.source, row.id): (row.seq, False) for row in rows}

    def listed(self, job: str, seqs: Collection[int], now: datetime) -> None:
        """The scan job `job` has found these events in its list."""
        rows = [{"event": seq, "job": job, "at": now} for seq in sorted(seqs)]
        insert_all(self.session, t.listings, rows, new_only=True)

    def newest(self, source: str, subjects: Collection[str]) -> dict[str, tuple[datetime, str]]:
        """Per subject, of the stored events that are not held: the greatest (when it occurred, id), where an event
        without a time counts from when it was received; one query."""
        each = self._each(subjects)
        free = select(t.RANKED_AT, _E.id).where(_E.source == source, _E.subject == each.c.value, t.IS_FREE)
        newest = free.order_by(t.RANKED_AT.desc(), _E.id.desc()).limit(1).correlate(each)
        instant, event = (newest.with_only_columns(column).scalar_subquery() for column in (t.RANKED_AT, _E.id))
        rows = self.session.rows(select(each.c.value, instant, event))
        return {subject: (at, event) for subject, at, event in rows if event is not None}

    def _each(self, texts: Collection[str]) -> TableValuedAlias:
        """These texts as a table of one column."""
        wanted = sorted(set(texts))
        if self.session.kind == "sqlite":
            return func.json_each(json.dumps(wanted)).table_valued("value")
        return func.unnest(literal(wanted, postgresql.ARRAY(Text))).table_valued("value").render_derived()

    def held(self, sources: Collection[str], limit: int, *, after: int = 0) -> list[Event]:
        """Events of these sources that are held, with bodies, oldest first by `seq`, those beyond `after`; a look costs
        nothing while there are none."""
        where = (t.IS_HELD, self.session.among(_E.source, sources), _E.seq > after)
        return self._with_bodies(select(*BARE).where(*where).order_by(_E.seq).limit(limit))

    def release(self, seqs: Collection[int]) -> set[int]:
        """These are held no longer; those of them that were until now."""
        query = select(_E.seq).where(self.session.among(_E.seq, seqs), t.IS_HELD).order_by(_E.seq)
        held = set(self.session.rows(query.with_for_update(key_share=True)).scalars())
        if held:
            self.session.write(update(t.events).where(self.session.among(_E.seq, held)).values(held=False))
        return held

    def get(self, source: str, event: str) -> Event | None:
        """With its body."""
        found = self._with_bodies(select(*BARE).where(_E.source == source, _E.id == event))
        return found[0] if found else None

    def by_seq(self, seqs: Collection[int]) -> dict[int, Event]:
        """With bodies."""
        found = self._with_bodies(select(*BARE).where(self.session.among(_E.seq, seqs)))
        return {event.seq: event for event in found}

    def _with_bodies(self, query: Select[*tuple[Any, ...]]) -> list[Event]:
        """The events that `query` gives. Their bodies are asked for apart: a join may read all bodies there are."""
        found = [bare(row) for row in self.session.rows(query)]
        if not found:
            return []
        table = t.event_bodies.c
        here = select(table.event, table.headers, table.body).where(
            self.session.among(table.event, [event.seq for event in found])
        )
        bodies = {row.event: (pairs(row.headers), bytes(row.body)) for row in self.session.rows(here)}
        return [replace(event, headers=bodies[event.seq][0], body=bodies[event.seq][1]) for event in found]

    def known(self, source: str, ids: Collection[str], job: str = "") -> dict[str, Known]:
        """Those of these ids that the inbox has, as the scan job `job` sees them; one query."""
        seen = exists().where(t.listings.c.event == _E.seq, t.listings.c.job == job)
        told = (t.IS_MISSED.label("missed"), seen.label("listed"), t.IS_UNDATED.label("undated"))
        columns = (_E.id, _E.seq, _E.received_at, _E.found_by, *told)
        rows = self.session.rows(self._named(source, ids, columns)).all()
        return {
            event: Known(seq, received, found_by, bool(missed), bool(listed), bool(undated))
            for event, seq, received, found_by, missed, listed, undated in rows
        }

    def _named(
        self, source: str, ids: Collection[str], columns: Sequence[ColumnElement[Any]], *, lock: bool = False
    ) -> Select[*tuple[Any, ...]]:
        """Asks for these events in the order of their ids; with `lock`, nobody else changes them until the transaction
        ends. One by one on PostgreSQL, which otherwise may read the whole source before it has statistics."""
        each = self._each(ids)
        one = select(*columns).where(_E.source == source)
        if self.session.kind == "sqlite":
            return one.where(_E.id.in_(select(each.c.value))).order_by(_E.id)
        one = one.where(_E.id == each.c.value).correlate(each).limit(1)
        found = (one.with_for_update(key_share=True) if lock else one).lateral("named")
        return select(found).select_from(each.join(found, true())).order_by(each.c.value)

    def unlisted(self, source: str, occurred: Window, came: Window, job: str, limit: int) -> tuple[int, list[str]]:
        """Events that came by webhook, were not made up (event.MADE_UP), were in no list that `job` has read, and
        occurred in `occurred` or, if they do not say when they did, came in `came` (both ends included): how many, and
        the ids of up to `limit`, those with a time first, each oldest first."""
        return unlisted(self.session, source, occurred, came, job, limit)

    def reject(self, rejects: Sequence[Reject], keep: int, size: int) -> None:
        """Keeps them, in this order, and of each source and reason the newest `keep`, or fewer if their bodies have
        more than `size` bytes, but always one; the oldest that is kept tells how many were `dropped`. `seq` is not
        read."""
        rejects_kept.add(self.session, rejects, keep, size)

    def rejects(self, source: str, limit: int, after: int = 0, since: datetime | None = None) -> list[Reject]:
        """Those of `seq` greater than `after` that came at `since` or later and were not accepted, oldest first."""
        return rejects_kept.oldest(self.session, source, limit, after, since)

    def accept(self, seqs: Collection[int], now: datetime) -> None:
        """These refused requests were verified again, and stored."""
        where = (self.session.among(t.rejects.c.seq, seqs), t.rejects.c.accepted_at.is_(None))
        self.session.write(update(t.rejects).where(*where).values(accepted_at=now))

    def sources(self) -> list[str]:
        """Of which there are events, in the order of their names; one seek each."""
        return list(self.session.rows(distinct(_E.source, true())).scalars())

    def prune(self, source: str, keep: timedelta, now: datetime, limit: int) -> int:
        """Deletes events and refused requests received longer than `keep` ago, at most `limit`; the number. Never an
        event of which a run is unfinished or a dead letter, nor one that is held."""
        return forgetting.prune(self.session, source, keep, now, limit)

    def forgotten(self, source: str) -> datetime | None:
        """Of events that were received later than this every id is known (None: of all). Read after `known` it holds
        for what that did not find."""
        return forgetting.forgotten(self.session, source)


def _listed(
    told: Mapping[Key, list[NewEvent]], found: Mapping[Key, tuple[int, bool]]
) -> Iterator[tuple[str, list[int], datetime]]:
    """(job, events, when) of what scans told."""
    by_scan: dict[tuple[str, datetime], list[int]] = {}
    for key, each in told.items():
        for event in each:
            if event.via is Via.SCAN:
                by_scan.setdefault((event.found_by, event.received_at), []).append(found[key][0])
    for (job, at), seqs in by_scan.items():
        yield job, seqs, at


def _body(seq: int, event: NewEvent) -> dict[str, Any]:
    return {"event": seq, "headers": event.headers, "body": event.body}


def _by_size(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(row["body"])
        if some and size > BYTES:
            yield some
            some, size = [], len(row["body"])
        some.append(row)
    if some:
        yield some
