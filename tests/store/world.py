"""Short words for the store's tests: a clock that stands still, jobs, runs, settlements."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.core.ids import new_id
from scheduler.core.job import Queue
from scheduler.core.model import Attempt, Cause, JobState, NewRun, Node, Run, Skip, SkipReason, Status
from scheduler.core.requests import Claim, Settlement
from scheduler.store.store import SqlStore

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def node(name: str = "n1", **changes: Any) -> Node:
    fields: dict[str, Any] = {
        "id": name,
        "host": "host",
        "pid": 7,
        "version": "0.1.0",
        "started_at": T0,
        "lease": timedelta(seconds=30),
        "slots": 64,
    }
    return Node(**{**fields, **changes})


def state(name: str, **changes: Any) -> JobState:
    fields: dict[str, Any] = {
        "name": name,
        "generation": 1,
        "fingerprint": f"print of {name}",
        "enabled": True,
        "next_due_at": None,
        "since": T0,
    }
    return JobState(**{**fields, **changes})


def new_run(job: str, **changes: Any) -> NewRun:
    run = changes.pop("id", None) or new_id()
    fields: dict[str, Any] = {
        "id": run,
        "job": job,
        "key": run,
        "cause": Cause.API,
        "created_at": T0,
        "queue": "default",
    }
    return NewRun(**{**fields, **changes})


def occurrence(job: str, at: datetime, **changes: Any) -> NewRun:
    fields: dict[str, Any] = {
        "cause": Cause.SCHEDULE,
        "key": f"at:{at.isoformat()}",
        "scheduled_for": at,
        "created_at": at,
        "lock": f"job:{job}",
    }
    return new_run(job, **{**fields, **changes})


def skipped(job: str, at: datetime, reason: SkipReason = SkipReason.MISSED, **changes: Any) -> Skip:
    return Skip(**{"job": job, "reason": reason, "first": at, "last": at, "count": 1, **changes})


def set_up(
    store: SqlStore,
    jobs: Iterable[str | JobState] = ("job",),
    *,
    nodes: Iterable[str] = ("n1",),
    queues: Iterable[Queue] = (),
) -> None:
    with store.begin() as tx:
        for name in nodes:
            tx.nodes.register(node(name), T0)
        tx.generations.put_queues(queues, T0)
        tx.jobs.put((state(job) if isinstance(job, str) else job, '{"of": "test"}') for job in jobs)


def add(store: SqlStore, *runs: NewRun) -> set[str]:
    with store.begin() as tx:
        return tx.runs.insert(runs)


def claim(store: SqlStore, now: datetime = T0, name: str = "n1", limit: int = 64, **changes: Any) -> list[Run]:
    with store.begin() as tx:
        return list(tx.runs.claim(Claim(**{"node": name, "generation": 1, "limit": limit, **changes}), now).runs)


def promote(store: SqlStore, now: datetime = T0) -> int:
    with store.begin() as tx:
        return tx.runs.promote(now).runs


def settlement(run: Run, status: Status = Status.COMPLETED, **changes: Any) -> Settlement:
    outcomes = {Status.COMPLETED: "completed", Status.CANCELED: "canceled"}
    fields: dict[str, Any] = {
        "run": run.id,
        "job": run.job,
        "lock": run.lock,
        "node": run.node,
        "fence": run.fence,
        "status": status,
        "attempt_outcome": outcomes.get(status, "exit"),
    }
    return Settlement(**{**fields, **changes})


def settle(store: SqlStore, *settlements: Settlement, now: datetime = T0 + SECOND, orphans: bool = False) -> list[Run]:
    with store.begin() as tx:
        return tx.runs.settle(settlements, now, orphans=orphans).runs


def get(store: SqlStore, run: str) -> Run:
    with store.read() as tx:
        found = tx.runs.get(run)
    assert found is not None
    return found


def attempts(store: SqlStore, run: str) -> tuple[Attempt, ...]:
    with store.queries() as queries:
        detail = queries.run(run)
    assert detail is not None
    return detail.attempts


def job_state(store: SqlStore, name: str = "job") -> JobState:
    with store.read() as tx:
        return tx.jobs.states([name])[name]
