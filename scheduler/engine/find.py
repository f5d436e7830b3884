"""Finding what people name: a run by a part of its id or by its job, and what to say when there is no such thing."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from scheduler.core.errors import NotFound, Refused
from scheduler.core.ids import short
from scheduler.core.job import Job
from scheduler.core.model import Run, Status
from scheduler.core.ports import Transaction
from scheduler.core.queries import Queries, RunFilter


def find_run(queries: Queries, text: str, jobs: Collection[str]) -> str:
    """The id of the run that `text` names: one of `jobs`, or a job that is gone (its run that is under way, else one
    that waits, else its last), an id, or a part of one that fits no other. Raises NotFound, or Refused when several
    fit."""
    if text in jobs:
        run = _latest_of(queries, text)
        if run is None:
            raise NotFound(f"{text} has no run yet", hint=f"schedctl run-now {text}")
        return run
    found = queries.find_runs(text, 10)
    if len(found) > 1 and text not in found:
        raise Refused(
            f"{text} fits several runs: {', '.join(short(one) for one in found)}", hint="write more of the id"
        )
    run = found[0] if found else _latest_of(queries, text)
    if run is None:
        raise NotFound(f"no run and no job {text!r}", hint="`schedctl runs` lists them")
    return run


def _latest_of(queries: Queries, job: str) -> str | None:
    for statuses in ((Status.RUNNING,), (Status.PENDING,), ()):
        page = queries.history(RunFilter(jobs=(job,), statuses=statuses, skips=False), limit=1)
        for entry in page.entries:
            if entry.run is not None:
                return entry.run.id
    return None


def stored_run(tx: Transaction, run: str) -> Run:
    """The run with this id. Raises NotFound."""
    found = tx.runs.get(run)
    if found is None:
        raise NotFound(f"no run {short(run)}", hint="`schedctl runs` lists them")
    return found


def startable(job: Job) -> Job:
    """The same job. Raises Refused for one that nothing here can start."""
    if job.external:
        raise Refused(
            f"{job.name} runs somewhere else: nothing here can start it",
            hint=f"start it there; what it told of its runs: schedctl runs {job.name}",
        )
    return job


def no_job(name: str, known: Iterable[str]) -> NotFound:
    """Names what is close."""
    close = difflib.get_close_matches(name, list(known), n=3)
    hint = f"did you mean {', '.join(close)}?" if close else "`schedctl list` shows them"
    return NotFound(f"no job {name!r}", hint=hint)
