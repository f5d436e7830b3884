"""The look of a node at the whole ledger, once a second for ever: one statement (core.look.Look).

Each of its parts is one seek in an index, or reads what is small or empty on a quiet day."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, cast, exists, func, literal, null, select

from scheduler.core.look import COUNTED, Beat, Glance, Look
from scheduler.core.model import ELSEWHERE
from scheduler.store import tables as t
from scheduler.store.session import Session
from scheduler.store.types import UtcInstant

_LIVE = t.nodes.c.state.in_(("live", "stopping"))


def look(session: Session, node: str, generation: int, now: datetime | None, mark: str | None) -> Look:
    """By the node of that id, which has loaded that generation. `now` and `mark` None: this database knows them."""
    row = session.rows(_statement(session.kind), me=node, loaded=generation).one()
    values: dict[str, str] = json.loads(row.values or "{}")
    beats = tuple(Beat(*beat) for beat in json.loads(row.beats or "[]"))
    return Look(
        now=now or row.now,
        mark=mark or _mark(row.snapshot, sum(beat.number for beat in beats), values),
        generation=row.generation,
        next_due=row.next_due,
        next_deadline=row.next_deadline,
        next_notification=row.next_notification,
        pending=row.pending,
        cancels=row.cancels,
        orphans=row.orphans,
        elsewhere=row.elsewhere,
        held=row.held,
        pings=row.pings,
        beats=beats,
        values=values,
    )


def glance(session: Session, node: str, now: datetime | None) -> Glance:
    """For the worker of that node. `now` None: this database knows it."""
    row = session.rows(_glance(session.kind), me=node).one()
    return Glance(now or row.now, row.pending, dict(json.loads(row.cancels or "[]")))


def _mark(snapshot: str, beats: int, values: dict[str, str]) -> str:
    """The number of transactions that were begun, up to the last one that has written, without those that are of no
    interest. While an earlier one is under way it is a mark that no other look has: what that one writes will show
    under the same number."""
    oldest, following, _ = snapshot.split(":")
    if oldest != following:
        return f"{snapshot} {beats}"
    counted = json.loads(values.get(COUNTED, "{}")).get("writes", 0)
    return str(int(following) - beats - counted)


_CANCELS = and_(t.IS_RUNNING, t.runs.c.node == bindparam("me"), t.runs.c.cancel.is_not(None))


@cache
def _glance(kind: str) -> Select[Any]:
    asked = (t.runs.c.id, t.runs.c.cancel)
    if kind == "postgresql":
        now: ColumnElement[Any] = func.clock_timestamp(type_=UtcInstant())
        cancels: ColumnElement[Any] = cast(func.json_agg(func.json_build_array(*asked)), Text)
    else:
        now, cancels = null(), func.json_group_array(func.json_array(*asked))
    return select(
        now.label("now"),
        exists().where(t.IS_PENDING).label("pending"),
        select(cancels).where(_CANCELS).scalar_subquery().label("cancels"),
    )


@cache
def _statement(kind: str) -> Select[Any]:
    postgresql = kind == "postgresql"
    pair = (t.installation.c.key, t.installation.c.value)
    values = cast(func.json_object_agg(*pair), Text) if postgresql else func.json_group_object(*pair)
    beat = (t.nodes.c.id, t.nodes.c.beat, t.nodes.c.lease, t.nodes.c.generation)
    if postgresql:
        beats: ColumnElement[Any] = cast(func.json_agg(func.json_build_array(*beat)), Text)
    else:
        beats = func.json_group_array(func.json_array(*beat))
    snapshot: ColumnElement[Any] = cast(func.txid_current_snapshot(), Text) if postgresql else null()
    now: ColumnElement[Any] = func.clock_timestamp(type_=UtcInstant()) if postgresql else null()
    jobs, runs = t.jobs.c, t.runs.c
    due = select(jobs.next_due_at).where(
        jobs.enabled, jobs.removed_at.is_(None), jobs.next_due_at.is_not(None), jobs.generation <= bindparam("loaded")
    )
    deadline = select(jobs.deadline_at).where(jobs.deadline_at.is_not(None), t.NOT_MISSED)
    living = select(t.nodes.c.id).where(t.nodes.c.id == runs.node, _LIVE)
    parts: dict[str, ColumnElement[Any]] = {
        "now": now,
        "snapshot": snapshot,
        "beats": select(beats).where(_LIVE).scalar_subquery(),
        "generation": select(func.coalesce(func.max(t.generations.c.id), literal(0))).scalar_subquery(),
        "next_due": due.order_by(jobs.next_due_at).limit(1).scalar_subquery(),
        "next_deadline": deadline.order_by(jobs.deadline_at).limit(1).scalar_subquery(),
        "next_notification": select(func.min(t.notifications.c.next_at)).where(t.IS_WAITING).scalar_subquery(),
        "pending": exists().where(t.IS_PENDING),
        "cancels": exists().where(_CANCELS),
        "orphans": exists().where(t.IS_RUNNING, runs.node != ELSEWHERE, ~living.exists()),
        "elsewhere": exists().where(t.IS_RUNNING, runs.node == ELSEWHERE),
        "held": exists().where(t.IS_HELD),
        "pings": exists().where(t.outgoing_pings.c.seq.is_not(None)),
        "values": select(values).scalar_subquery(),
    }
    return select(*(part.label(name) for name, part in parts.items()))
