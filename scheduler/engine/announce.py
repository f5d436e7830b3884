"""Lays ready what people are to be told, in the transaction that made it true; the notifier sends it afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler.core.execution import Bus
from scheduler.core.job import Configuration
from scheduler.core.ports import Transaction
from scheduler.core.tiding import Entry, Tiding, wanted


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


def announced(bus: Bus, count: int) -> None:
    """After the commit: so many notifications wait, and need not wait for the notifier's next round."""
    if count:
        bus.publish("notification.announced", count=count)
