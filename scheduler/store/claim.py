"""PENDING → RUNNING.

Rows are locked in the order node, job, queue, lock, run. What a queue allows (runs at once, tokens) is counted while
its row is held, so that no two nodes count the same place; whose lock is held steps out of the way of the others
(`waits_for`), so that the next look finds runs that can be had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain, zip_longest
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, select, update

from scheduler.core.model import Cause, JobState, Run, WaitsFor
from scheduler.core.requests import Claim, Claimed
from scheduler.store import tables as t
from scheduler.store.jobs import changed_after
from scheduler.store.nodes import SqlNodes
from scheduler.store.pauses import closed_jobs, paused_jobs
from scheduler.store.places import Place, in_turn, lock_queues, pay
from scheduler.store.promote import FIRST_ORDERED, IS_RUNNING_BESIDE, OLDEST_READY, OLDEST_WAITER, next_in_line
from scheduler.store.rows import STATE, state_of
from scheduler.store.session import Session, listed
from scheduler.store.take import take

_ROUNDS = 8
"""How often a claim looks again after it sent runs away that wait for a lock or a pause."""
_EXTRA = 100
"""Candidates looked at beyond those that are wanted, once the first look was not enough: mostly it is, and every one
costs as much as to take it."""

_CANDIDATE = (
    t.runs.c.seq,
    t.runs.c.job,
    t.runs.c.cause,
    t.runs.c.queue,
    t.runs.c.lock,
    IS_RUNNING_BESIDE.label("beside"),
)


@dataclass(slots=True)
class _Choice:
    """What one look found: runs to claim, by their numbers, and runs that step out of the way. `jobs` are those of the
    runs that were looked at, as they stand; `passed`: runs of others were among them, which somebody is changing at
    this moment or which this node has not loaded."""

    chosen: dict[int, Row[Any]] = field(default_factory=dict)
    behind_lock: list[int] = field(default_factory=list)
    behind_pause: list[int] = field(default_factory=list)
    left_locks: set[str] = field(default_factory=set)
    jobs: dict[str, JobState] = field(default_factory=dict)
    passed: bool = False


def claim(session: Session, asked: Claim, now: datetime) -> Claimed:
    """The runs that `asked.node` holds from now on: the queues take turns, from claim to claim (`asked.served`), within
    a queue by priority, then age."""
    if asked.limit <= 0 or not (asked.held or SqlNodes(session).hold(asked.node)):
        return Claimed()
    places = lock_queues(session, asked.queues, asked.skip_busy_queues, now)
    turns = in_turn(places.values(), asked.served)
    newer: Collection[str] | None = None
    paused: set[str] = set()
    claimed: list[Run] = []
    jobs: dict[str, JobState] = {}
    most = asked.limit
    for _ in range(_ROUNDS):
        wanted = asked.limit - len(claimed)
        candidates = _candidates(session, turns, most, newer or ())
        if not candidates:
            break
        choice = _choose(session, candidates, places, wanted, asked.generation, paused)
        _step_aside(session, choice)
        jobs |= choice.jobs
        taken = take(session, asked.node, choice.chosen, now)
        claimed += taken
        left = choice.chosen.keys() - {run.seq for run in taken}
        found = _put_back(session, [choice.chosen[seq] for seq in left], places, now)
        paused |= found
        more_may_lie_behind = most == asked.limit and len(candidates) >= most
        again = bool(choice.behind_lock or choice.behind_pause or found) or more_may_lie_behind
        if choice.passed and newer is None:
            newer = changed_after(session, asked.generation)
            again = again or bool(newer)
        if len(claimed) >= asked.limit or not again:
            break
        most = asked.limit + _EXTRA
    pay(session, turns)
    return Claimed(claimed, jobs)


_OF_QUEUE = t.runs.c.queue == bindparam("of_queue")
_READY_IN = (
    select(*_CANDIDATE)
    .where(t.READY, _OF_QUEUE)
    .order_by(t.runs.c.priority.desc(), t.runs.c.seq)
    .limit(bindparam("most"))
)
_BUSY = select(func.count()).where(t.IS_RUNNING, _OF_QUEUE).scalar_subquery()
_READY_IN_LIMITED = _READY_IN.add_columns(_BUSY.label("busy")).where(bindparam("concurrency") > _BUSY)


def _candidates(session: Session, places: Iterable[Place], most: int, newer: Collection[str]) -> list[Row[Any]]:
    """Ready runs, at most so many of each queue, of queues that can take one: one of each, in the order given, then the
    next of each."""
    found = []
    for place in places:
        if place.full:
            continue
        limit = place.concurrency
        query, limits = (_READY_IN, {}) if limit is None else (_READY_IN_LIMITED, {"concurrency": limit})
        if newer:
            query = query.where(t.runs.c.job.not_in(newer))
        rows = session.rows(query, of_queue=place.name, most=most, **limits).all()
        if limit is not None:
            place.room = limit - rows[0].busy if rows else 0
        found.append(rows)
    return [row for row in chain.from_iterable(zip_longest(*found)) if row is not None]


def _choose(
    session: Session,
    candidates: list[Row[Any]],
    places: Mapping[str, Place],
    wanted: int,
    generation: int,
    paused: Collection[str],
) -> _Choice:
    """`paused`: jobs that are known to be. Nobody pauses one of the others from now on; whether it is paused already is
    seen when its runs are taken."""
    names = {row.job for row in candidates}
    jobs, closed = _lock_jobs(session, names, generation)
    held_jobs = closed.union(paused)
    oldest, held = _lock_locks(session, {row.lock for row in candidates if row.lock is not None and row.job in jobs})
    choice = _Choice(jobs=jobs, passed=len(jobs) < len(names))
    for row in candidates:
        if len(choice.chosen) >= wanted:
            break
        if row.job in held_jobs and row.cause != Cause.MANUAL.value:
            choice.behind_pause.append(row.seq)
            if row.lock is not None:
                choice.left_locks.add(row.lock)
        elif row.lock in held or row.beside:
            choice.behind_lock.append(row.seq)
        elif row.lock is not None and row.lock not in oldest:
            continue
        elif (oldest.get(row.lock) or row.seq) != row.seq:
            # another one is next, unseen by whoever made this one ready, or made ready after we looked
            choice.behind_lock.append(row.seq)
            choice.left_locks.add(row.lock)
        elif row.job in jobs and places[row.queue].take():
            choice.chosen[row.seq] = row
            if row.lock is not None:
                held.add(row.lock)
    return choice


@cache
def _jobs_of(kind: str) -> Select[Any]:
    jobs = t.jobs.c
    query = select(*STATE).where(listed(kind, jobs.name), jobs.generation <= bindparam("loaded"))
    return query.order_by(jobs.name).with_for_update(read=True, key_share=True, skip_locked=True)


def _lock_jobs(session: Session, names: set[str], generation: int) -> tuple[dict[str, JobState], set[str]]:
    """(jobs that nobody changes until the transaction ends; those of `names` that are disabled, removed or unknown).
    Those that somebody is changing at this moment are left out of the first."""
    rows = session.rows(_jobs_of(session.kind), listed=session.listing(names), loaded=generation)
    found = {row.name: state_of(row) for row in rows}
    closed = {name for name, state in found.items() if not state.enabled or state.removed_at is not None}
    missing = names - found.keys()
    return found, closed | closed_jobs(session, missing) if missing else closed


def _lock_locks(session: Session, keys: set[str]) -> tuple[dict[str | None, int | None], set[str]]:
    """(free ones that are ours until the transaction ends, with the first in line; ones that a run holds). A lock that
    somebody is changing at this moment is in neither."""
    if not keys:
        return {}, set()
    table = t.locks.c
    query = (
        select(table.key, FIRST_ORDERED, OLDEST_WAITER, OLDEST_READY)
        .where(session.among(table.key, keys), table.run.is_(None))
        .order_by(table.key)
        .with_for_update(skip_locked=True, key_share=True, of=t.locks)
    )
    free: dict[str | None, int | None] = {}
    for key, first, *oldest in session.rows(query):
        free[key] = min((seq for seq in oldest if seq is not None), default=None) if first is None else first
    rest = keys - free.keys()
    if not rest:
        return free, set()
    return free, set(
        session.rows(select(table.key).where(session.among(table.key, rest), table.run.is_not(None))).scalars()
    )


def _step_aside(session: Session, choice: _Choice) -> None:
    for seqs, word in ((choice.behind_lock, WaitsFor.LOCK), (choice.behind_pause, WaitsFor.PAUSE)):
        here = session.unheld(t.READY, seqs)
        if here:
            session.write(update(t.runs).where(session.among(t.runs.c.seq, here)).values(waits_for=word.value))
    # a run that waits for its job's pause must not hold up others in the line of a shared lock
    next_in_line(session, choice.left_locks)


def _put_back(session: Session, rows: Sequence[Row[Any]], places: Mapping[str, Place], now: datetime) -> set[str]:
    """Those were chosen and could not be taken; which of their jobs are paused."""
    for row in rows:
        places[row.queue].put_back()
    return paused_jobs(session, {row.job for row in rows}, now) if rows else set()
