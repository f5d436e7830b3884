"""Runs: the verbs, most of them a module each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, func, select, update

from scheduler.core.job import Job
from scheduler.core.model import ELSEWHERE, NewRun, Output, Run, Skip, Status, WaitsFor
from scheduler.core.requests import Claim, Claimed, Due, Leftover, Promoted, Report, Settled, Settlement, Unfinished
from scheduler.core.value_object import value_object
from scheduler.store import cancel, elsewhere, retention, unfinished
from scheduler.store import tables as t
from scheduler.store.bulk import insert_all, update_each
from scheduler.store.claim import claim as take
from scheduler.store.insert import insert as add
from scheduler.store.kept_locks import dead_before
from scheduler.store.places import moved
from scheduler.store.promote import distinct, next_in_line
from scheduler.store.promote import promote as wake
from scheduler.store.redefine import redefine as follow
from scheduler.store.rows import RUN, WHOLE_RUN, runs_of, whole_runs
from scheduler.store.session import Session, chunks, listed
from scheduler.store.settle import hold_for
from scheduler.store.settle import settle as close
from scheduler.store.skips import skip as leave_out

_CANCELLED = select(t.runs.c.id, t.runs.c.cancel).where(
    t.IS_RUNNING, t.runs.c.node == bindparam("of_node"), t.runs.c.cancel.is_not(None)
)


@cache
def _began(kind: str) -> Select[Any]:
    began = func.coalesce(t.runs.c.started_at, t.runs.c.created_at)
    return select(t.runs.c.id, t.runs.c.job, began).where(listed(kind, t.runs.c.id))


@value_object
class SqlRuns:
    session: Session

    def insert(self, runs: Sequence[NewRun], known: Mapping[str, Due] | None = None) -> set[str]:
        return set(add(self.session, runs, known))

    def place(self, runs: Sequence[NewRun]) -> dict[str, WaitsFor | None]:
        return add(self.session, runs)

    def skip(self, skips: Sequence[Skip], *, apart: bool = False) -> None:
        leave_out(self.session, skips, apart=apart)

    def skip_waiting(self, runs: Collection[str], reason: str, now: datetime) -> set[str]:
        return cancel.skip_waiting(self.session, runs, reason, now)

    def claim(self, claim: Claim, now: datetime) -> Claimed:
        return take(self.session, claim, now)

    def promote(self, now: datetime, after: str | None = "") -> Promoted:
        return wake(self.session, now, after)

    def settle(self, settlements: Sequence[Settlement], now: datetime, *, orphans: bool = False) -> Settled:
        return close(self.session, settlements, now, orphans=orphans)

    def hold_for(self, settlements: Sequence[Settlement]) -> None:
        hold_for(self.session, settlements)

    def running(self, node: str) -> list[Run]:
        query = select(*WHOLE_RUN).where(t.IS_RUNNING, t.runs.c.node == node).order_by(t.runs.c.seq)
        return whole_runs(self.session.rows(query))

    def orphaned(self, limit: int) -> list[Run]:
        """RUNNING runs of nodes that are dead, stopped or forgotten; without payloads."""
        holders = set(self.session.rows(distinct(t.runs.c.node, t.IS_RUNNING)).scalars()) - {ELSEWHERE}
        alive = select(t.nodes.c.id).where(t.nodes.c.id.in_(holders), t.nodes.c.state.in_(("live", "stopping")))
        over = holders - set(self.session.rows(alive).scalars()) if holders else set()
        if not over:
            return []
        query = select(*RUN).where(t.IS_RUNNING, t.runs.c.node.in_(over)).order_by(t.runs.c.seq).limit(limit)
        return runs_of(self.session.rows(query))

    def begin_elsewhere(self, run: NewRun, began: datetime) -> Run | None:
        return elsewhere.begin(self.session, run, began)

    def elsewhere(self, job: str | None = None) -> list[Run]:
        return elsewhere.under_way(self.session, job)

    def latest_elsewhere(self, job: str) -> Run | None:
        return elsewhere.latest(self.session, job)

    def told(self, run: str) -> tuple[bytes, int]:
        return elsewhere.printed(self.session, run)

    def request_cancel(self, runs: Collection[str], why: str, now: datetime) -> set[str]:
        return cancel.request_cancel(self.session, runs, why, now)

    def hasten(self, run: str, why: str, now: datetime) -> bool:
        query = select(t.runs.c.lock, t.runs.c.note, t.runs.c.waits_for).where(t.IS_PENDING, t.runs.c.id == run)
        row = self.session.rows(query.with_for_update()).first()
        if row is None:
            return False
        changed: dict[str, Any] = {"note": f"{row.note}; {why}" if row.note else why}
        timed: bool = row.waits_for == WaitsFor.TIME.value
        if timed:
            changed |= {"not_before": now, "waits_for": None if row.lock is None else WaitsFor.LOCK.value}
        self.session.write(update(t.runs).where(t.runs.c.id == run).values(changed))
        if timed and row.lock is not None:
            next_in_line(self.session, [row.lock])
        return timed

    def dead_before(self, runs: Sequence[Run], most: int) -> dict[str, list[str]]:
        return dead_before(self.session, runs, most)

    def cancel_requests(self, node: str) -> dict[str, str]:
        return dict(self.session.rows(_CANCELLED, of_node=node).all())

    def report(self, reports: Sequence[Report]) -> None:
        """What a stale holder says changes nothing."""
        rows = [
            {
                "id": one.run,
                "fence": one.fence,
                "progress": one.progress,
                "message": one.message,
                "result": one.result,
                "checkpoint": one.checkpoint,
            }
            for one in reports
        ]
        self._lock({one.run for one in reports})
        update_each(self.session, t.runs, ("id", "fence"), rows, t.IS_RUNNING, keep_null=True)

    def put_output(self, outputs: Sequence[Output], runs: Collection[Run] = ()) -> None:
        outputs = [one for one in outputs if one.written or not one.complete]
        known = {run.id: (run.job, run.started_at or run.created_at) for run in runs}
        unknown = {one.run for one in outputs} - known.keys()
        if unknown:
            found = self.session.rows(_began(self.session.kind), listed=self.session.listing(unknown))
            known.update({row[0]: (row[1], row[2]) for row in found})
        rows = [
            {
                "run": one.run,
                "attempt": one.attempt,
                "job": known[one.run][0],
                "at": known[one.run][1],
                "head": one.head,
                "tail": one.tail,
                "omitted": one.omitted,
                "complete": one.complete,
            }
            for one in sorted(outputs, key=lambda one: (one.run, one.attempt))
            if one.run in known
        ]
        insert_all(self.session, t.outputs, rows, replaces=True)

    def _lock(self, runs: set[str]) -> None:
        if self.session.kind != "sqlite" and runs:
            query = select(t.runs.c.seq).where(self.session.among(t.runs.c.id, runs)).order_by(t.runs.c.seq)
            self.session.rows(query.with_for_update()).all()

    def get(self, run: str) -> Run | None:
        return self._one(t.runs.c.id == run)

    def by_key(self, job: str, key: str) -> Run | None:
        return self._one((t.runs.c.job == job) & (t.runs.c.key == key))

    def by_keys(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Run]:
        if not keys:
            return {}
        found: list[Row[Any]] = []
        for chunk in chunks(sorted(keys), 1000):
            # two lists instead of one of pairs: both databases have an index for that
            jobs, names = {job for job, _ in chunk}, [key for _, key in chunk]
            query = select(*WHOLE_RUN).where(t.runs.c.job.in_(jobs), self.session.among(t.runs.c.key, names))
            found += [row for row in self.session.rows(query) if (row.job, row.key) in keys]
        return {(run.job, run.key): run for run in whole_runs(found)}

    def typical(self, job: str) -> float | None:
        """Of the last 20 completed ones."""
        last = (
            select(t.runs.c.took)
            .where(
                t.runs.c.job == job,
                t.runs.c.finished_at.is_not(None),
                t.runs.c.took.is_not(None),
                t.runs.c.status == Status.COMPLETED.value,
            )
            .order_by(t.runs.c.finished_at.desc())
            .limit(20)
            .subquery()
        )
        average: float | None = self.session.rows(select(func.avg(last.c.took))).scalar()
        return average

    def _one(self, where: ColumnElement[bool]) -> Run | None:
        return next(iter(whole_runs(self.session.rows(select(*WHOLE_RUN).where(where)))), None)

    def unfinished(self, jobs: Collection[str]) -> list[Unfinished]:
        """By age: every running run, every waiting occurrence, and of a job's other waiting runs the oldest."""
        found = unfinished.unfinished_of(self.session, jobs)
        return sorted((one for ones in found.values() for one in ones), key=lambda one: one.seq)

    def drop_pending(self, job: str, now: datetime) -> tuple[int, int]:
        return cancel.drop_pending(self.session, job, now)

    def give_up(self, runs: Collection[str], error: str, now: datetime) -> set[str]:
        return cancel.give_up(self.session, runs, error, now)

    def pending_counts(self, jobs: Collection[str]) -> dict[str, Leftover]:
        return unfinished.pending_counts(self.session, jobs)

    def replaceable(self, job: str) -> list[str]:
        return unfinished.replaceable(self.session, job)

    def redefine(self, job: Job) -> int:
        return follow(self.session, job)

    def discard(self, runs: Collection[str], now: datetime) -> set[str]:
        return cancel.discard(self.session, runs, now)

    def shift_clock(self, step: timedelta, now: datetime) -> None:
        """Moves everything stored in clock time (not_before of waiting runs, refill times) by `step`."""
        queues = select(t.queues.c.name, t.queues.c.refilled_at).order_by(t.queues.c.name).with_for_update()
        refill = update(t.queues).where(t.queues.c.name == bindparam("queue")).values(refilled_at=bindparam("at"))
        refills = self.session.rows(queues).all()
        self.session.write(refill, [{"queue": name, "at": moved(at, step, now)} for name, at in refills])
        runs = select(t.runs.c.seq, t.runs.c.not_before).where(t.WAITS_TIME).order_by(t.runs.c.seq)
        move = update(t.runs).where(t.runs.c.seq == bindparam("row"), t.WAITS_TIME).values(not_before=bindparam("at"))
        for chunk in chunks(self.session.rows(runs).all()):
            self.session.write(move, [{"row": seq, "at": at + step} for seq, at in chunk])

    def prunable(self, rules: Mapping[str, tuple[timedelta | int, timedelta]], now: datetime) -> list[str]:
        return retention.prunable(self.session, rules, now)

    def prune(self, job: str, keep: timedelta | int, keep_output: timedelta, now: datetime, limit: int) -> int:
        return retention.prune(self.session, job, keep, keep_output, now, limit)
