"""What is recorded, for whoever compares it with what was expected. Backfilled runs do not count there: what became of
their instants before stays true; nor do those of external jobs, whose instants nobody here had to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, func, select

from scheduler.core.model import Cause, Skip, SkipReason, Status
from scheduler.core.value_object import value_object
from scheduler.store import tables as t
from scheduler.store.rows import RUN, run_of, skip_of, skip_of_run
from scheduler.store.session import Session

_SKIPPED = t.runs.c.status == Status.SKIPPED.value
_BACKFILLED = t.runs.c.cause == Cause.BACKFILL.value
_ELSEWHERE = t.runs.c.cause == Cause.API.value
_HAS_INSTANT = and_(t.runs.c.scheduled_for.is_not(None), ~_BACKFILLED, ~_ELSEWHERE)


@value_object
class SqlLedger:
    session: Session

    def entries(self, job: str, first: datetime, last: datetime) -> tuple[list[datetime], list[Skip]]:
        """Instants that have a run (cancelled ones too), and skips that touch `[first, last]`; both ascending. SKIPPED
        runs come as skips, unless another run has their instant."""
        here = (t.runs.c.job == job, _HAS_INSTANT, t.runs.c.scheduled_for.between(first, last))
        ran = select(t.runs.c.scheduled_for).where(*here, ~_SKIPPED).distinct().order_by(t.runs.c.scheduled_for)
        instants = list(self.session.rows(ran).scalars())
        taken = set(instants)
        waited = [run_of(row) for row in self.session.rows(select(*RUN).where(*here, _SKIPPED))]
        ranges = select(t.skips).where(t.skips.c.job == job, t.skips.c.last >= first, t.skips.c.first <= last)
        skips = [skip_of(row) for row in self.session.rows(ranges)]
        skips += [skip_of_run(run) for run in waited if run.scheduled_for not in taken]
        return instants, sorted(skips, key=lambda one: one.first)

    def fates(self, job: str, first: datetime, last: datetime) -> dict[datetime, list[tuple[str, Status]]]:
        """Per instant in `[first, last]` that has any: its runs, oldest first, backfilled ones among them."""
        query = select(t.runs.c.scheduled_for, t.runs.c.id, t.runs.c.status)
        query = query.where(t.runs.c.job == job, t.runs.c.scheduled_for.between(first, last)).order_by(t.runs.c.seq)
        fates: dict[datetime, list[tuple[str, Status]]] = {}
        for instant, run, status in self.session.rows(query):
            fates.setdefault(instant, []).append((run, Status(status)))
        return fates

    def backfills(self, job: str, instants: Sequence[datetime]) -> dict[datetime, int]:
        """How often each of these was backfilled before; those that were not are left out."""
        if not instants:
            return {}
        between = t.runs.c.scheduled_for.between(min(instants), max(instants))
        query = select(t.runs.c.scheduled_for, func.count()).where(t.runs.c.job == job, between, _BACKFILLED)
        return dict(self.session.rows(query.group_by(t.runs.c.scheduled_for)).all())

    def overlaps(self, since: Mapping[str, datetime]) -> list[tuple[Skip, datetime]]:
        """Overlap skips of these jobs that reach past the instant given for each, with the start (or, before it, the
        creation) of the run that was in their way."""
        if not since:
            return []
        query = (
            select(t.skips, t.runs.c.started_at.label("began"), t.runs.c.created_at.label("made"))
            .join(t.runs, t.runs.c.id == t.skips.c.blocked_by)
            .where(
                t.skips.c.job.in_(since),
                t.skips.c.reason == SkipReason.OVERLAP.value,
                t.skips.c.last > min(since.values()),
            )
            .order_by(t.skips.c.job, t.skips.c.first)
        )
        return [(skip_of(row), row.began or row.made) for row in self.session.rows(query) if row.last > since[row.job]]

    def totals(self, since: datetime, until: datetime) -> dict[str, tuple[int, dict[str, int]]]:
        """Per job: number of instants in `[since, until]` with a run, and of skipped ones by reason. A range of skips
        that reaches over an edge counts whole."""
        # by way of the jobs: one seek for each instead of a look at everything
        names = select(t.jobs.c.name)
        here = (t.runs.c.job.in_(names), _HAS_INSTANT, t.runs.c.scheduled_for.between(since, until))
        ran_query = (
            select(t.runs.c.job, func.count(t.runs.c.scheduled_for.distinct()))
            .where(*here, ~_SKIPPED)
            .group_by(t.runs.c.job)
        )
        ran: dict[str, int] = dict(self.session.rows(ran_query).all())
        skipped: dict[str, Counter[str]] = {}
        for job, reason, count in self.session.rows(
            select(t.runs.c.job, t.runs.c.reason, func.count())
            .where(*here, _SKIPPED)
            .group_by(t.runs.c.job, t.runs.c.reason)
        ):
            skipped.setdefault(job, Counter())[reason] += count
        for job, reason, count in self.session.rows(
            select(t.skips.c.job, t.skips.c.reason, func.sum(t.skips.c["count"]))
            .where(t.skips.c.job.in_(names), t.skips.c.last >= since, t.skips.c.first <= until)
            .group_by(t.skips.c.job, t.skips.c.reason)
        ):
            skipped.setdefault(job, Counter())[reason] += int(count)
        return {job: (ran.get(job, 0), dict(skipped.get(job, {}))) for job in sorted({*ran, *skipped})}
