"""Lays ready what people are to be told, in the transaction that made it true; the notifier sends it afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler.core.execution import Bus
from scheduler.core.job import Configuration
from scheduler.core.model import Run, Status
from scheduler.core.ports import Transaction
from scheduler.core.tiding import Entry, Kind, Tiding, wanted


def announce(tx: Transaction, tidings: Sequence[Tiding], configuration: Configuration, now: datetime) -> int:
    """One notification per channel that the tiding's job wants to be told by, in the caller's transaction; how many
    are new. What was announced before under its key is not announced again. Costs nothing where no channel is
    concerned. After the commit the caller says so with `announced`."""
    entries = [
        Entry(channel, tiding)
        for tiding in tidings
        if (job := configuration.jobs.get(tiding.job)) is not None and job.watch.notify
        for channel in wanted(job.watch.notify, tiding.kind)
    ]
    return tx.notifications.put(entries, now) if entries else 0


def ends(runs: Sequence[Run], configuration: Configuration, now: datetime) -> list[Tiding]:
    """What there is to tell of runs that have just ended: that they completed, or became dead letters. Nothing of jobs
    of which nobody is told."""
    found = []
    for run in runs:
        job = configuration.jobs.get(run.job)
        if job is None or not job.watch.notify:
            continue
        at = run.finished_at or now
        if run.status is Status.COMPLETED:
            found.append(Tiding(Kind.COMPLETED, run.job, at, f"completed:{run.id}", run.id))
        elif run.status is Status.FAILED and run.has_payload:
            found.append(Tiding(Kind.DEAD_LETTER, run.job, at, f"dead:{run.id}", run.id))
    return found


def announced(bus: Bus, count: int) -> None:
    """After the commit: so many notifications wait, and need not wait for the notifier's next round."""
    if count:
        bus.publish("notification.announced", count=count)
