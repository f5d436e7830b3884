"""The audit: recomputes what should have happened from the schedule versions and compares it with the ledger.

It never starts anything. The engine audits itself every hour over the time since its last clean audit; what it finds
unaccounted is recorded as SKIPPED(missed) and raises an alarm, and a person may run it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

import structlog

from scheduler.core.commands import AuditReport, JobAudit
from scheduler.core.model import JobState, ScheduleVersion, Skip, SkipReason
from scheduler.core.ports import Bus, Store, Transaction
from scheduler.core.schedule import SCHEDULE_CODE, TZDATA_VERSION, Schedule
from scheduler.core.stamp import from_text, to_text
from scheduler.engine.swap import schedule_of

log = structlog.get_logger("engine")

NAMED = 100
"""So many unaccounted instants are listed by name; all are counted."""
EVERY = timedelta(hours=1)
CLEAN_UNTIL = "audit_clean_until"
OVERDUE = timedelta(minutes=1)
"""Instants that the planner has not reached although they are older than this are unaccounted."""

_TICK = timedelta(microseconds=1)


def audit(store: Store, since: datetime, until: datetime, job: str | None = None) -> AuditReport:
    """The balance of every job (or one) whose schedule was in force in `[since, until]`."""
    with store.read() as tx:
        versions = tx.jobs.versions(since, job)
        states = tx.jobs.states([job] if job is not None else None)
    by_job: dict[str, list[ScheduleVersion]] = {}
    for version in versions:
        by_job.setdefault(version.job, []).append(version)
    balances = []
    for name, own in sorted(by_job.items()):
        with store.read() as tx:
            balances.append(_balance(tx, name, own, states.get(name), since, until))
    return AuditReport(since, until, tuple(balances))


def _balance(
    tx: Transaction,
    name: str,
    versions: list[ScheduleVersion],
    state: JobState | None,
    since: datetime,
    until: datetime,
) -> JobAudit:
    expected = ran = missing_count = 0
    skipped: Counter[str] = Counter()
    missing: list[datetime] = []
    surplus: list[datetime] = []
    unknown: list[str] = []
    for version in versions:
        first, last = _period(version, state, since, until)
        if first > last:
            continue
        if (version.spec["tzdata"], version.spec["code"]) != (TZDATA_VERSION, SCHEDULE_CODE):
            unknown.append(
                f"{to_text(first)} to {to_text(last)}: planned with tzdata {version.spec['tzdata']}, "
                f"schedule code {version.spec['code']}; this release has {TZDATA_VERSION}, {SCHEDULE_CODE}"
            )
            continue
        schedule = schedule_of(version.spec)
        runs, skips = tx.ledger.entries(name, first, last)
        expected += schedule.count(first, last)
        ran += len(runs)
        for skip in skips:
            inside = schedule.count(max(skip.first, first), min(skip.last, last))
            skipped[str(skip.reason)] += inside
            if first <= skip.first and skip.last <= last and inside != skip.count:
                surplus.append(skip.first)
        for a, b in _between(skips, first, last):
            lost, extra = _compare(schedule, [t for t in runs if a <= t <= b], a, b)
            missing_count += lost.count
            missing.extend(lost.named[: NAMED - len(missing)])
            surplus.extend(extra)
    return JobAudit(
        name, expected, ran, dict(skipped), tuple(missing), missing_count, tuple(surplus[:NAMED]), tuple(unknown)
    )


@dataclass(frozen=True, slots=True)
class _Missing:
    count: int
    named: list[datetime]


def _compare(
    schedule: Schedule, runs: list[datetime], first: datetime, last: datetime
) -> tuple[_Missing, list[datetime]]:
    """Instants of `[first, last]` without a run, and runs at instants that the schedule does not have."""
    if not runs:
        count = schedule.count(first, last)
        return _Missing(count, list(islice(schedule.between(first, last), NAMED)) if count else []), []
    recorded = set(runs)
    wanted = set(schedule.between(first, last))
    lost = sorted(wanted - recorded)
    return _Missing(len(lost), lost[:NAMED]), sorted(recorded - wanted)


def _between(skips: list[Skip], first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The closed stretches of `[first, last]` outside the skips."""
    cursor = first
    for skip in skips:
        if skip.first > cursor:
            yield cursor, min(skip.first - _TICK, last)
        cursor = max(cursor, skip.last + _TICK)
    if cursor <= last:
        yield cursor, last


def _period(
    version: ScheduleVersion, state: JobState | None, since: datetime, until: datetime
) -> tuple[datetime, datetime]:
    """The closed part of `[since, until]` in which this version ruled and instants must be accounted for."""
    first = max(since, version.valid_from + _TICK)
    if state is not None and state.pruned_before is not None:
        first = max(first, state.pruned_before)
    if version.valid_to is not None:
        return first, min(until, version.valid_to)
    planned = state.next_due_at - _TICK if state is not None and state.next_due_at is not None else until
    return first, min(until, max(planned, until - OVERDUE))


class Auditor:
    """The engine's own audit. `every` hour it looks at the time since its last clean audit."""

    def __init__(self, store: Store, bus: Bus, node: Callable[[], str]) -> None:
        self._store = store
        self._bus = bus
        self._node = node

    def tick(self, now: datetime) -> int:
        """Audits if an hour has passed; the number of instants that were unaccounted."""
        with self._store.read() as tx:
            text = tx.generations.value(CLEAN_UNTIL)
        since = from_text(text) if text is not None else None
        if since is None:
            with self._store.begin() as tx:
                tx.generations.swap_value(CLEAN_UNTIL, None, to_text(now))
            return 0
        if now - since < EVERY:
            return 0
        report = audit(self._store, since, now - OVERDUE)
        found = [job for job in report.jobs if not job.clean]
        recorded = sum(self._record(job) for job in found)
        with self._store.begin() as tx:
            tx.generations.swap_value(CLEAN_UNTIL, text, to_text(now - OVERDUE))
        self._bus.publish("audit.finished", jobs=len(report.jobs), unaccounted=recorded, since=since, until=now)
        return recorded

    def _record(self, job: JobAudit) -> int:
        """What was lost is written down as missed, never started."""
        log.error(
            "instants_unaccounted",
            job_name=job.job,
            count=job.unaccounted_count,
            first=[to_text(t) for t in job.unaccounted[:3]],
            surplus=[to_text(t) for t in job.surplus[:3]],
            remedy=f"schedctl audit --job {job.job}",
        )
        skips = [
            Skip(job.job, SkipReason.MISSED, instant, instant, 1, detail="found by audit")
            for instant in job.unaccounted
        ]
        with self._store.begin() as tx:
            if tx.nodes.hold(self._node()):
                tx.runs.skip(skips)
        return job.unaccounted_count
