"""Jobs as the planner sees them: when they are due, and what their policies need."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, Text, bindparam, cast, delete, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from scheduler.core.model import Ack, JobState, Json, Pause, ScheduleVersion
from scheduler.core.requests import Advance, Defined, Due
from scheduler.core.state import Flip
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.acks import acks_of, put_ack
from scheduler.store.bulk import insert_all, update_each
from scheduler.store.flips import flip, next_deadline, passed, prune_flips
from scheduler.store.insert import new_locks
from scheduler.store.pauses import pauses_of, put_pauses, resume
from scheduler.store.rows import STATE, state_of, version_of
from scheduler.store.session import Session, chunks, listed
from scheduler.store.types import Written
from scheduler.store.unfinished import unfinished_of

PRESENT = t.jobs.c.removed_at.is_(None)
_FEW = 16
"""Different values up to which each has a statement of its own: jobs that share a schedule share their instants."""
_CHANGED_AFTER = select(t.jobs.c.name).where(t.jobs.c.generation > bindparam("generation"))


_KNOWN = t.jobs.c.generation <= bindparam("known")
_DUE = (
    select(*STATE, t.jobs.c.last_skip_id)
    .where(t.jobs.c.enabled, PRESENT, t.jobs.c.next_due_at <= bindparam("now"), _KNOWN)
    .order_by(t.jobs.c.next_due_at)
    .limit(bindparam("most", type_=Integer))
    .with_for_update(skip_locked=True, key_share=True)
)
_NEXT_DUE = (
    select(t.jobs.c.next_due_at)
    .where(t.jobs.c.enabled, PRESENT, t.jobs.c.next_due_at.is_not(None), _KNOWN)
    .order_by(t.jobs.c.next_due_at)
    .limit(1)
)


_DEFINED = select(t.jobs.c.name, t.jobs.c.fingerprint, t.jobs.c.removed_at.is_not(None), t.jobs.c.alarm.is_not(None))


@cache
def _states(kind: str, *, narrowed: bool, lock: bool) -> Select[Any]:
    query = select(*STATE).order_by(t.jobs.c.name)
    if narrowed:
        query = query.where(listed(kind, t.jobs.c.name))
    return query.with_for_update() if lock else query


@cache
def _held(kind: str) -> Select[Any]:
    query = select(t.jobs.c.name).where(listed(kind, t.jobs.c.name)).order_by(t.jobs.c.name)
    return query.with_for_update(read=True, key_share=True)


@cache
def _moved(kind: str) -> ReturningUpdate[Any]:
    job = t.jobs.c
    move = update(t.jobs).where(listed(kind, job.name), job.next_due_at == bindparam("old"))
    return move.values(next_due_at=bindparam("new")).returning(job.name)


@value_object
class SqlJobs:
    session: Session

    def states(self, names: Collection[str] | None = None, *, lock: bool = False) -> dict[str, JobState]:
        """By name, removed jobs too. With `lock` nobody plans, claims, settles or changes them until the end of the
        transaction."""
        query = _states(self.session.kind, narrowed=names is not None, lock=lock)
        asked = {} if names is None else {"listed": self.session.listing(names)}
        return {row.name: state_of(row) for row in self.session.rows(query, **asked).all()}

    def names(self, after: str, limit: int) -> list[str]:
        """Names greater than that, in their order, those of removed jobs among them."""
        query = select(t.jobs.c.name).where(t.jobs.c.name > after).order_by(t.jobs.c.name).limit(limit)
        return list(self.session.rows(query).scalars())

    def due(self, now: datetime, generation: int, limit: int) -> list[Due]:
        """Enabled, present jobs with `next_due_at <= now` not changed after `generation`, most overdue first, rows
        locked (PostgreSQL: rows that somebody holds are passed over)."""
        rows = self.session.rows(_DUE, now=now, known=generation, most=limit).all()
        states = [state_of(row) for row in rows]
        since = min((state.next_due_at for state in states if state.next_due_at is not None), default=now)
        return self._with_context(states, since, {row.name for row in rows if row.last_skip_id is not None})

    def hold(self, names: Collection[str]) -> None:
        if self.session.kind == "sqlite" or not names:
            return
        self.session.rows(_held(self.session.kind), listed=self.session.listing(names)).all()

    def context(self, names: Collection[str], since: datetime) -> list[Due]:
        """The same view of given jobs (no lock), with pauses that end after `since`."""
        return self._with_context(list(self.states(names).values()), since, names)

    def _with_context(self, states: Sequence[JobState], since: datetime, open_skips: Collection[str]) -> list[Due]:
        names = [state.name for state in states]
        if not names:
            return []
        unfinished = unfinished_of(self.session, names)
        pauses: dict[str, list[Pause]] = {}
        for pause in pauses_of(self.session, names, since):
            pauses.setdefault(pause.job, []).append(pause)
        return [
            Due(
                state,
                tuple(unfinished.get(state.name, ())),
                tuple(pauses.get(state.name, ())),
                state.name in open_skips,
            )
            for state in states
        ]

    def next_due(self, generation: int) -> datetime | None:
        """The earliest `next_due_at`: when the planner must look again."""
        instant: datetime | None = self.session.rows(_NEXT_DUE, known=generation).scalar()
        return instant

    def defined(self) -> dict[str, Defined]:
        rows = self.session.rows(_DEFINED).all()
        return {
            name: Defined(fingerprint, bool(removed), bool(alarmed)) for name, fingerprint, removed, alarmed in rows
        }

    def put(self, states: Iterable[tuple[JobState, str]]) -> None:
        """Inserts or replaces job rows; the text is the job's definition as JSON."""
        ordered = sorted(states, key=lambda pair: pair[0].name)
        self.session.lock_jobs((state.name for state, _ in ordered), change=True)
        names = [column.name for column in STATE]
        for chunk in chunks(ordered, 500):  # Rows take more room than what they are made of.
            rows = [
                {**{name: getattr(state, name) for name in names}, "definition": _written(text)}
                for state, text in chunk
            ]
            insert_all(self.session, t.jobs, rows, replaces=True)

    def open_locks(self, keys: Collection[str]) -> None:
        new_locks(self.session, keys)

    def followers(self, jobs: Collection[str]) -> dict[str, Mapping[str, Json]]:
        """The definitions of the present, enabled jobs that run after one of these, by name. Looks at every job."""
        found = {}
        for name, definition in self._with("after").items():
            after = definition["after"]
            if isinstance(after, dict) and after.get("job") in jobs:
                found[name] = definition
        return found

    def subscribers(self) -> dict[str, Mapping[str, Json]]:
        """The definitions of the present, enabled jobs that events start, by name. Looks at every job."""
        return self._with("on_event")

    def _with(self, key: str) -> dict[str, Mapping[str, Json]]:
        text = cast(t.jobs.c.definition, Text)
        query = select(t.jobs.c.name, t.jobs.c.definition).where(t.jobs.c.enabled, PRESENT, text.contains(f'"{key}"'))
        rows = self.session.rows(query.order_by(t.jobs.c.name))
        return {name: definition for name, definition in rows if key in definition}

    def advance(self, moves: Sequence[Advance]) -> set[str]:
        """The jobs that moved."""
        alike: dict[tuple[datetime, datetime | None], list[str]] = {}
        for move in moves:
            alike.setdefault((move.old, move.new), []).append(move.job)
        if len(alike) > _FEW:
            still = self._still(moves)
            self._set("next_due_at", {move.job: move.new for move in still})
            return {move.job for move in still}
        moved: set[str] = set()
        for (old, new), names in alike.items():
            values = {"listed": self.session.listing(names), "old": old, "new": new}
            moved.update(self.session.connection.execute(_moved(self.session.kind), values).scalars().all())
        return moved

    def _still(self, moves: Sequence[Advance]) -> list[Advance]:
        """Those of which the old instant is still true, and stays so until the transaction ends."""
        query = (
            select(t.jobs.c.name, t.jobs.c.next_due_at)
            .where(self.session.among(t.jobs.c.name, [move.job for move in moves]))
            .order_by(t.jobs.c.name)
        )
        now_at = dict(self.session.rows(query.with_for_update(key_share=True)).all())
        return [move for move in moves if now_at.get(move.job) == move.old]

    def _set(self, column: str, values: Mapping[str, datetime | None]) -> None:
        """Whoever may meet another transaction has locked the rows."""
        alike: dict[datetime | None, list[str]] = {}
        for name, new in values.items():
            alike.setdefault(new, []).append(name)
        if len(alike) > _FEW:
            update_each(self.session, t.jobs, ("name",), [{"name": name, column: new} for name, new in values.items()])
            return
        for new, names in alike.items():
            mine = self.session.among(t.jobs.c.name, names)
            self.session.write(update(t.jobs).where(mine).values({column: new}))

    def set_alarm(self, job: str, alarm: str | None, *, enabled: bool) -> None:
        self.session.lock_jobs([job], change=True)
        self.session.write(update(t.jobs).where(t.jobs.c.name == job).values(alarm=alarm, enabled=enabled))

    def set_deadlines(self, deadlines: Mapping[str, datetime | None]) -> None:
        self.session.lock_jobs(deadlines)
        self._set("deadline_at", deadlines)

    def passed(self, at: datetime) -> list[JobState]:
        return passed(self.session, at)

    def next_deadline(self, after: datetime) -> datetime | None:
        return next_deadline(self.session, after)

    def flip(self, flips: Sequence[Flip], now: datetime) -> list[Flip]:
        return flip(self.session, flips, now)

    def prune_flips(self, before: datetime, limit: int) -> int:
        return prune_flips(self.session, before, limit)

    def versions(self, since: datetime, jobs: Collection[str] | None = None) -> list[ScheduleVersion]:
        """Schedule versions valid at some time after `since`, by job and `valid_from`."""
        table = t.schedule_versions.c
        where: list[ColumnElement[bool]] = [table.valid_to.is_(None) | (table.valid_to > since)]
        if jobs is not None:
            where.append(self.session.among(table.job, jobs))
        query = select(t.schedule_versions).where(*where).order_by(table.job, table.valid_from)
        return [version_of(row) for row in self.session.rows(query)]

    def open_versions(self, versions: Iterable[ScheduleVersion]) -> None:
        rows = [
            {"job": one.job, "spec": dict(one.spec), "valid_from": one.valid_from, "valid_to": one.valid_to}
            for one in versions
        ]
        insert_all(self.session, t.schedule_versions, rows)

    def close_versions(self, jobs: Collection[str], at: datetime) -> None:
        """Ends the versions in force; one that would end before it began leaves no trace."""
        table = t.schedule_versions.c
        open_ones = (self.session.among(table.job, jobs), table.valid_to.is_(None))
        self.session.write(delete(t.schedule_versions).where(*open_ones, table.valid_from >= at))
        self.session.write(update(t.schedule_versions).where(*open_ones).values(valid_to=at))

    def pauses(self, jobs: Collection[str] | None, since: datetime) -> list[Pause]:
        """Pauses that end after `since`, by start."""
        return pauses_of(self.session, jobs, since)

    def ack(self, ack: Ack, *, settled: datetime) -> None:
        put_ack(self.session, ack, settled)

    def acks(self, jobs: Collection[str], since: datetime) -> list[Ack]:
        return acks_of(self.session, jobs, since)

    def pause(self, pauses: Iterable[Pause]) -> None:
        put_pauses(self.session, list(pauses))

    def resume(self, jobs: Collection[str], now: datetime) -> set[str]:
        """Ends the pauses in force (and drops those to come); the jobs that had one."""
        return resume(self.session, jobs, now)


def _written(definition: str) -> Json:
    return Written(definition) if definition.isascii() else json.loads(definition)


def changed_after(session: Session, generation: int) -> list[str]:
    """Jobs whose last change this node has not loaded."""
    return list(session.rows(_CHANGED_AFTER, generation=generation).scalars())
