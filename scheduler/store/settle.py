"""RUNNING → what follows. Rows are locked in the order node, job, lock, run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Row, Select, Update, bindparam, delete, func, select, update

from scheduler.core.model import FailReason, Run, Status, WaitsFor
from scheduler.core.requests import Settled, Settlement
from scheduler.store import tables as t
from scheduler.store.bulk import Change, update_tables
from scheduler.store.promote import next_in_line
from scheduler.store.redefine import rejoin
from scheduler.store.rows import RUN, STATE, runs_of, state_of
from scheduler.store.session import Session, chunks, listed


def settle(session: Session, settlements: Sequence[Settlement], now: datetime, *, orphans: bool = False) -> Settled:
    """Applies those whose run is RUNNING under that node and fence, frees their locks (but for dead letters that keep
    theirs) and wakes the next in line; the runs in the order given. The nodes must not be dead or stopped; with
    `orphans` they must be (or be forgotten). A run that somebody asked to cancel after this was decided is tried no
    further. What waits again needs what its job says by now (rejoin)."""
    asked = {one.run: one for one in settlements}
    states, newest = _nodes(session, {one.node for one in asked.values()})
    over = {name for name, state in states.items() if state in ("dead", "stopped")}
    asked = {run: one for run, one in asked.items() if (one.node in over) is orphans}
    jobs = _lock_what_they_hold(session, asked.values())
    current = {run.id: run for run in _runs(session, asked)}
    mine = [_unless_canceled(run, asked[run.id]) for run in current.values() if _holds(run, asked[run.id])]
    after = [_after(current[one.run], one, now) for one in mine]
    pairs = [(current[one.run], one) for one in mine]
    records = _records(after, jobs)
    update_tables(session, [_of_runs(after), _of_attempts(pairs, now), _of_jobs(records)])
    session.write(
        _NEVER_BEGUN,
        [{"of_run": run.id, "of_number": run.attempt} for run, one in pairs if one.attempt_outcome is None],
    )
    held = {run.lock for run in after if run.lock is not None}
    after = rejoin(session, after)
    keys = held | {run.lock for run in after if run.lock is not None}
    if keys:
        ids = [run.id for run in after if not asked[run.id].keeps_lock]
        session.write(_freed(session.kind), {"listed": session.listing(keys), "by": session.listing(ids)})
        next_in_line(session, keys)
        woken = _woken(session, after)
        after = [replace(run, waits_for=None) if run.id in woken else run for run in after]
    position = {run: index for index, run in enumerate(asked)}
    told = {
        name: replace(state_of(jobs[name]), **{shown: getattr(record, shown) for shown in _SHOWN})
        for name, record in records.items()
    }
    live = frozenset(name for name, state in states.items() if state == "live")
    return Settled(sorted(after, key=lambda run: position[run.id]), told, live, newest)


def hold_for(session: Session, settlements: Sequence[Settlement]) -> None:
    """Locks what `settle` locks before the runs."""
    if session.kind == "sqlite" or not settlements:
        return
    _nodes(session, {one.node for one in settlements})
    _lock_what_they_hold(session, settlements)


@cache
def _states(kind: str) -> Select[Any]:
    newest = select(func.max(t.generations.c.id)).scalar_subquery()
    query = select(t.nodes.c.id, t.nodes.c.state, newest).where(listed(kind, t.nodes.c.id)).order_by(t.nodes.c.id)
    return query.with_for_update(read=True, key_share=True)  # As SqlNodes.hold.


@cache
def _read(kind: str) -> Select[Any]:
    query = select(*RUN).where(listed(kind, t.runs.c.id)).order_by(t.runs.c.seq)
    return query.with_for_update()


@cache
def _locked(kind: str) -> Select[Any]:
    query = select(t.locks.c.key).where(listed(kind, t.locks.c.key)).order_by(t.locks.c.key)
    return query.with_for_update(key_share=True)


@cache
def _freed(kind: str) -> Update:
    return update(t.locks).where(listed(kind, t.locks.c.key), listed(kind, t.locks.c.run, "by")).values(run=None)


@cache
def _jobs(kind: str) -> Select[Any]:
    query = select(*STATE, *_SEQS).where(listed(kind, t.jobs.c.name)).order_by(t.jobs.c.name)
    return query.with_for_update(key_share=True)


_NEVER_BEGUN = delete(t.attempts).where(
    t.attempts.c.run == bindparam("of_run"), t.attempts.c.number == bindparam("of_number")
)


def _nodes(session: Session, names: set[str]) -> tuple[dict[str, str], int | None]:
    """The state of each of these nodes, which nobody changes until the transaction ends (a forgotten one is dead), and
    the newest generation, unless all are forgotten."""
    rows = session.rows(_states(session.kind), listed=session.listing(names)).all() if names else ()
    states = {name: state for name, state, _ in rows}
    return {name: states.get(name, "dead") for name in names}, (rows[0][2] or 0) if rows else None


def _lock_what_they_hold(session: Session, settlements: Collection[Settlement]) -> dict[str, Row[Any]]:
    """The rows of their jobs, then of their locks: of a run, neither changes while it is RUNNING. The jobs, by name."""
    names = {one.job for one in settlements}
    jobs = {row.name: row for row in session.rows(_jobs(session.kind), listed=session.listing(names))} if names else {}
    locks = {one.lock for one in settlements if one.lock is not None}
    if locks and session.kind != "sqlite":
        session.rows(_locked(session.kind), listed=session.listing(locks)).all()
    return jobs


def _runs(session: Session, ids: Iterable[str]) -> list[Run]:
    """Locked until the transaction ends."""
    found = []
    for chunk in chunks(ids):
        found += runs_of(session.rows(_read(session.kind), listed=session.listing(chunk)).all())
    return found


def _holds(run: Run, one: Settlement) -> bool:
    return run.status is Status.RUNNING and run.node == one.node and run.fence == one.fence


def _unless_canceled(run: Run, one: Settlement) -> Settlement:
    """What core.lifecycle.settle would have said if it had seen the request in the locked row."""
    if run.cancel is None or one.status is not Status.PENDING:
        return one
    lost = one.attempt_outcome == FailReason.LOST
    return replace(
        one,
        status=Status.CANCELED,
        attempt_outcome=one.attempt_outcome if lost else "canceled",
        reason=run.cancel,
        not_before=None,
        failures=run.failures,
        lost=run.lost,
    )


def _after(run: Run, one: Settlement, now: datetime) -> Run:
    given_back = one.attempt_outcome is None
    attempt = run.attempt - 1 if given_back else run.attempt
    waits = one.status is Status.PENDING
    waits_for = run.waits_for
    if waits:
        later = one.not_before is not None and one.not_before > now
        waits_for = WaitsFor.TIME if later else (WaitsFor.LOCK if run.lock is not None else None)
    return replace(
        run,
        status=one.status,
        attempt=attempt,
        started_at=run.started_at if attempt > 0 else None,
        failures=one.failures,
        lost=one.lost,
        reason=one.reason,
        error=one.error,
        exit_code=one.exit_code,
        signal=one.signal,
        result=run.result if one.result is None else one.result,
        node=None if waits else run.node,
        took=run.took if one.took is None or given_back else (run.took or 0.0) + one.took,
        finished_at=run.finished_at if waits else one.ended or now,
        not_before=one.not_before if waits else run.not_before,
        waits_for=waits_for,
    )


_CHANGED = (
    "status",
    "attempt",
    "started_at",
    "failures",
    "lost",
    "reason",
    "error",
    "exit_code",
    "signal",
    "result",
    "node",
    "finished_at",
    "not_before",
    "waits_for",
    "took",
)

_CHANGED_BY_SUCCESS = ("status", "reason", "error", "exit_code", "signal", "result", "finished_at", "took")
"""All that a success changes: what is not written need not be looked for in indexes either."""

_OFTEN_ALIKE = tuple(name for name in _CHANGED if name not in ("started_at", "finished_at", "took"))


def _of_runs(runs: Sequence[Run]) -> Change:
    names = _CHANGED_BY_SUCCESS if all(run.status is Status.COMPLETED for run in runs) else _CHANGED
    rows = [{"seq": run.seq, **{name: getattr(run, name) for name in names}} for run in runs]
    return Change(t.runs, ("seq",), rows, tuple(name for name in _OFTEN_ALIKE if name in names))


def _of_attempts(pairs: Sequence[tuple[Run, Settlement]], now: datetime) -> Change:
    rows = [
        {
            "run": run.id,
            "number": run.attempt,
            "finished_at": one.ended or now,
            "outcome": one.attempt_outcome,
            "exit_code": one.exit_code,
            "signal": one.signal,
            "error": one.error,
            "left": one.left,
            "took": one.took,
        }
        for run, one in pairs
        if one.attempt_outcome is not None
    ]
    return Change(t.attempts, ("run", "number"), rows, ("outcome", "exit_code", "signal", "error", "left"))


@dataclass(slots=True)
class _Record:
    """What a job's row says about its past."""

    last_success_at: datetime | None
    settled_until: datetime | None
    last_failure_at: datetime | None
    consecutive_failures: int
    last_success_seq: int | None
    last_failure_seq: int | None

    def noted(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def add(self, run: Run) -> None:
        assert run.finished_at is not None
        if run.status is Status.COMPLETED:
            self.last_success_at = _later(self.last_success_at, run.finished_at)
            # the instant it was for; a run without one settles what was due when it started
            self.settled_until = _later(self.settled_until, run.scheduled_for or run.started_at)
            self.consecutive_failures = 0
            self.last_success_seq = run.seq
        else:
            self.last_failure_at = _later(self.last_failure_at, run.finished_at)
            self.consecutive_failures += 1
            self.last_failure_seq = run.seq


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return max(one, other)


_SHOWN = tuple(field.name for field in fields(_Record) if not field.name.endswith("_seq"))
_SEQS = tuple(t.jobs.c[field.name] for field in fields(_Record) if field.name.endswith("_seq"))


def _records(runs: Sequence[Run], jobs: Mapping[str, Row[Any]]) -> dict[str, _Record]:
    """What jobs, whose rows are locked, have behind them after these runs, by name; those of which nothing changes are
    left out."""
    records: dict[str, _Record] = {}
    for run in runs:
        if run.status not in (Status.COMPLETED, Status.FAILED) or run.job not in jobs:
            continue
        if run.job not in records:
            row = jobs[run.job]
            records[run.job] = _Record(*(getattr(row, name) for name in _SHOWN), *row[len(STATE) :])
        records[run.job].add(run)
    return records


def _of_jobs(records: Mapping[str, _Record]) -> Change:
    return Change(t.jobs, ("name",), [{"name": job, **record.noted()} for job, record in records.items()])


def _woken(session: Session, runs: Sequence[Run]) -> set[str]:
    """Runs that went back into the line for their lock and are its first again."""
    waiting = [run.seq for run in runs if run.waits_for is WaitsFor.LOCK]
    if not waiting:
        return set()
    return set(session.rows(select(t.runs.c.id).where(session.among(t.runs.c.seq, waiting), t.READY)).scalars())
