"""Unfinished runs as policies see them."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, union_all

from scheduler.core.model import Cause, Status
from scheduler.core.requests import Leftover, Unfinished
from scheduler.store import tables as t
from scheduler.store.session import Session, listed


def unfinished_of(session: Session, jobs: Collection[str]) -> dict[str, list[Unfinished]]:
    """Per job, oldest first: every running run, every waiting occurrence, and of other waiting runs the oldest (there
    may be a hundred thousand, and no policy asks for more)."""
    found: dict[str, list[Unfinished]] = {}
    for row in session.rows(_unfinished(session.kind), listed=session.listing(jobs)).all():
        foreign = row.holder_id if row.holder_job is not None and row.holder_job != row.job else None
        found.setdefault(row.job, []).append(
            Unfinished(row.job, row.id, row.seq, Status(row.status), row.cause, row.attempt, row.created_at, foreign)
        )
    return found


@cache
def _unfinished(kind: str) -> Select[Any]:
    oldest = (
        select(func.min(t.runs.c.seq))
        .where(t.PENDING_OTHER, t.runs.c.job == t.jobs.c.name)
        .scalar_subquery()
        .correlate(t.jobs)
    )
    seqs = union_all(
        select(t.runs.c.seq).where(t.IS_RUNNING, listed(kind, t.runs.c.job)),
        select(t.runs.c.seq).where(t.PENDING_OCCURRENCE, listed(kind, t.runs.c.job)),
        select(oldest).where(listed(kind, t.jobs.c.name)),
    )
    run, holder = t.runs.c, t.runs.alias("holder")
    columns = (run.job, run.id, run.seq, run.status, run.cause, run.attempt, run.created_at)
    return (
        select(*columns, holder.c.id.label("holder_id"), holder.c.job.label("holder_job"))
        .outerjoin(t.locks, t.locks.c.key == run.lock)
        .outerjoin(holder, holder.c.id == t.locks.c.run)
        .where(run.seq.in_(seqs))
        .order_by(run.seq)
    )


def replaceable(session: Session, job: str) -> list[str]:
    """Ids, oldest first: every running run, and of the waiting ones those without a payload, or handed in by hand."""
    own = or_(~t.runs.c.has_payload, t.runs.c.cause == Cause.MANUAL.value)
    seqs = union_all(
        select(t.runs.c.seq).where(t.IS_RUNNING, t.runs.c.job == job),
        select(t.runs.c.seq).where(t.PENDING_OCCURRENCE, t.runs.c.job == job, own),
        select(t.runs.c.seq).where(t.PENDING_OTHER, t.runs.c.job == job, own),
    )
    return list(session.rows(select(t.runs.c.id).where(t.runs.c.seq.in_(seqs)).order_by(t.runs.c.seq)).scalars())


def pending_counts(session: Session, jobs: Collection[str]) -> dict[str, Leftover]:
    """Every waiting run of these jobs, by what becomes of it when its job is removed; jobs without any are left out."""

    def count(where: ColumnElement[bool]) -> dict[str, int]:
        query = (
            select(t.runs.c.job, func.count()).where(where, session.among(t.runs.c.job, jobs)).group_by(t.runs.c.job)
        )
        return dict(session.rows(query).all())

    carrying = t.runs.c.has_payload
    occurrences = count(and_(t.PENDING_OCCURRENCE, ~carrying))
    due_payloads, payloads = count(and_(t.PENDING_OCCURRENCE, carrying)), count(and_(t.PENDING_OTHER, carrying))
    others = count(and_(t.PENDING_OTHER, ~carrying))
    return {
        job: Leftover(occurrences.get(job, 0), due_payloads.get(job, 0) + payloads.get(job, 0), others.get(job, 0))
        for job in sorted({*occurrences, *due_payloads, *payloads, *others})
    }
