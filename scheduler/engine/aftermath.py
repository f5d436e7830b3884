"""What follows the end of attempts, in the transaction that writes it: locks, follow-up runs, deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from scheduler.core.execution import Bus
from scheduler.core.job import Job
from scheduler.core.model import Cause, NewRun, Run, Status
from scheduler.core.ports import Transaction
from scheduler.core.requests import Settlement
from scheduler.engine.deadlines import refresh_deadlines
from scheduler.engine.in_force import InForce
from scheduler.engine.new_run import new_run


def settle_all(
    tx: Transaction,
    in_force: InForce,
    settlements: Sequence[Settlement],
    now: datetime,
    *,
    orphans: bool = False,
) -> list[Run]:
    """Settles, gives every `after` subscriber its run, refreshes the deadlines; the runs that changed."""
    runs = tx.runs.settle(settlements, now, orphans=orphans)
    configuration = in_force.current.configuration
    follow_ups = [
        _follow_up(job, run, now)
        for run in runs
        if run.status.final
        for job in configuration.jobs.values()
        if job.after is not None and job.enabled and job.after.job == run.job and job.after.on is run.status
    ]
    if follow_ups:
        tx.runs.insert(follow_ups)
    completed = {run.job for run in runs if run.status is Status.COMPLETED}
    refresh_deadlines(tx, [configuration.jobs[name] for name in completed if name in configuration.jobs], now)
    return runs


def _follow_up(job: Job, run: Run, now: datetime) -> NewRun:
    payload = {"schema": 1, "run": run.id, "job": run.job, "status": str(run.status), "result": run.result}
    return replace(new_run(job, Cause.AFTER, now, f"after:{run.id}"), payload=payload, has_payload=True)


def announce_settled(bus: Bus, run: Run, now: datetime) -> None:
    """After the commit: what an attempt of `run` came to."""
    bus.publish(
        "run.settled",
        run=run.id,
        job=run.job,
        attempt=run.attempt,
        status=str(run.status),
        reason=run.reason,
        started_at=run.started_at,
        finished_at=run.finished_at or now,
        took=run.took,
        next_attempt_at=run.not_before if run.status is Status.PENDING else None,
    )
