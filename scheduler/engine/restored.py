"""After a restore: what was due since the backup may have run, and this ledger cannot know."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from scheduler.core.hindrances import RESTORED
from scheduler.core.job import Configuration, Job
from scheduler.core.model import Skip, SkipReason
from scheduler.core.policy import Plan, PlannedRun, plan
from scheduler.core.ports import Transaction
from scheduler.core.requests import Due
from scheduler.engine.swap import plan_owed


def write_off(tx: Transaction, known: Configuration | None, now: datetime) -> int:
    """Records every instant that is owed at `now` as SKIPPED(missed), unless a pause or blackout excuses it, and none
    of them runs, whatever the policies say; their number. `known`: the configuration in force, if it can be read."""
    planned = plan_owed(tx, known, tx.jobs.states(lock=True), now, _written_off)
    return sum(entry.count for _, one in planned for entry in one.entries if isinstance(entry, Skip))


def _written_off(job: Job, due: Due, now: datetime) -> Plan:
    judged = plan(job, due, now)
    return Plan(tuple(_missed(job.name, entry) for entry in judged.entries), judged.next_due_at)


def _missed(job: str, entry: PlannedRun | Skip) -> Skip:
    if isinstance(entry, PlannedRun):
        return Skip(job, SkipReason.MISSED, entry.instant, entry.instant, 1, detail=RESTORED)
    if entry.reason in (SkipReason.PAUSED, SkipReason.BLACKOUT):
        return entry
    return replace(entry, reason=SkipReason.MISSED, blocked_by=None, detail=RESTORED)
