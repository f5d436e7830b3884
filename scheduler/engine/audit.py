"""The audit: recomputes what should have happened from the schedule versions and compares it with the ledger.

It never starts anything. The engine audits itself every hour over the time since its last clean audit; what it finds
unaccounted is recorded as SKIPPED(missed) and raises an alarm, and a person may run it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from scheduler.core.canary import CANARY
from scheduler.core.commands import AuditReport, JobAudit
from scheduler.core.execution import Bus
from scheduler.core.look import Look
from scheduler.core.model import Skip, SkipReason
from scheduler.core.ports import Store
from scheduler.core.stamp import from_text, to_text
from scheduler.engine.balance import Gap, balance

log = structlog.get_logger("engine")

EVERY = timedelta(hours=1)
CLEAN_UNTIL = "audit_clean_until"
OVERDUE = timedelta(minutes=1)
"""What is older than this must be accounted for."""

_TICK = timedelta(microseconds=1)


def audit(store: Store, since: datetime, until: datetime, job: str | None = None) -> AuditReport:
    """The balance of every job (or one) whose schedule was in force in `[since, until]`: of the canary, which watches
    itself, only if it is named. What runs elsewhere owes this
    ledger nothing: whether it ran is for its deadline to say."""
    with store.read() as tx:
        versions = [
            one
            for one in tx.jobs.versions(since, None if job is None else [job])
            if one.valid_from < until and not one.elsewhere
        ]
        names = sorted({version.job for version in versions if job is not None or version.job != CANARY})
    balances = []
    for name in names:
        with store.read() as tx:
            balances.append(balance(tx, name, since, until)[0])
    return AuditReport(since, until, tuple(balances))


class Auditor:
    """The engine's own audit, once an hour over all nodes."""

    def __init__(self, store: Store, bus: Bus, node: Callable[[], str]) -> None:
        self._store = store
        self._bus = bus
        self._node = node

    def rests(self, look: Look) -> bool:
        """The last audit is no hour ago."""
        text = look.values.get(CLEAN_UNTIL)
        return text is not None and timedelta(0) <= look.now - from_text(text) < EVERY

    def tick(self, now: datetime) -> int:
        """Audits if an hour has passed; the number of instants that were unaccounted."""
        with self._store.read() as tx:
            text = tx.generations.value(CLEAN_UNTIL)
        since = from_text(text) if text is not None else None
        if since is None or since > now:  # never yet, or the clock was set back behind it
            self._move(text, now)
            return 0
        if now - since < EVERY:
            return 0
        until = now - OVERDUE
        report = audit(self._store, since, until)
        recorded = sum(self._record(job, since, until) for job in report.jobs if not job.clean)
        if not self._move(text, until):
            return recorded
        self._bus.publish("audit.finished", jobs=len(report.jobs), unaccounted=recorded, since=since, until=until)
        return recorded

    def _move(self, old: str | None, to: datetime) -> bool:
        with self._store.begin() as tx:
            return tx.nodes.hold(self._node()) and tx.generations.swap_value(CLEAN_UNTIL, old, to_text(to))

    def _record(self, found: JobAudit, since: datetime, until: datetime) -> int:
        """What was lost is written down as missed, never started. It is looked at again while nobody can plan the job:
        instants from `next_due_at` on are not lost, the planner will judge them."""
        with self._store.begin() as tx:
            if not tx.nodes.hold(self._node()):
                return 0
            state = tx.jobs.states([found.job], lock=True).get(found.job)
            if state is not None and state.next_due_at is not None:
                until = min(until, state.next_due_at - _TICK)
            _, gaps = balance(tx, found.job, since, until)
            tx.runs.skip([_missed(found.job, gap) for gap in gaps], apart=True)
        lost = sum(gap.count for gap in gaps)
        if lost or found.surplus:
            log.error(
                "instants_unaccounted",
                job_name=found.job,
                count=lost,
                first=[to_text(gap.first) for gap in gaps[:3]],
                surplus=[to_text(t) for t in found.surplus[:3]],
                remedy=f"schedctl audit --job {found.job}",
            )
        return lost


def _missed(job: str, gap: Gap) -> Skip:
    return Skip(job, SkipReason.MISSED, gap.first, gap.last, gap.count, detail="found by audit")
