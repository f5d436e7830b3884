"""Runs of external jobs: no node holds them, they have no lock, no queue and no place."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from scheduler.core.model import ELSEWHERE, NewRun, Run, Status
from scheduler.store import tables as t
from scheduler.store.bulk import insert_all
from scheduler.store.insert import row_of
from scheduler.store.rows import RUN, run_of, runs_of
from scheduler.store.session import Session

NO_QUEUE = ""


def begin(session: Session, run: NewRun, began: datetime) -> Run | None:
    """RUNNING since `began`; None, and nothing changed: there is a run with that (job, key)."""
    row = row_of(run, NO_QUEUE, None)
    row |= {"status": Status.RUNNING.value, "attempt": 1, "node": ELSEWHERE, "lock": None, "started_at": began}
    if not insert_all(session, t.runs, [row], new_only=True):
        return None
    fingerprint = session.rows(select(t.jobs.c.fingerprint).where(t.jobs.c.name == run.job)).scalar()
    attempt = {"run": run.id, "number": 1, "node": ELSEWHERE, "fence": 0, "started_at": began, "left": 0}
    insert_all(session, t.attempts, [attempt | {"fingerprint": fingerprint or ""}])
    return run_of(session.rows(select(*RUN).where(t.runs.c.id == run.id)).one())


def under_way(session: Session, job: str | None) -> list[Run]:
    """RUNNING ones of that job, or of all, oldest first."""
    query = select(*RUN).where(t.IS_RUNNING, t.runs.c.node == ELSEWHERE)
    if job is not None:
        query = query.where(t.runs.c.job == job)
    return runs_of(session.rows(query.order_by(t.runs.c.seq)))


def latest(session: Session, job: str) -> Run | None:
    """The youngest one of that job, whatever became of it."""
    query = select(*RUN).where(t.runs.c.job == job, t.runs.c.node == ELSEWHERE).order_by(t.runs.c.seq.desc()).limit(1)
    row = session.rows(query).first()
    return None if row is None else run_of(row)


def printed(session: Session, run: str) -> tuple[bytes, int]:
    """What is kept of what it told so far, and how many bytes before that were left out."""
    query = select(t.outputs.c.tail, t.outputs.c.omitted).where(t.outputs.c.run == run, t.outputs.c.attempt == 1)
    row = session.rows(query).first()
    return (b"", 0) if row is None else (row.tail, row.omitted)
