"""Ending runs: one of them, or all that a job has unfinished."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.errors import NotFound, Refused
from scheduler.core.ids import short
from scheduler.core.model import Run, Status
from scheduler.core.queries import RunFilter
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.fields import Body, Text
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.present import Shown, run_json, when
from scheduler.web.shapes import many, record, ref

NAMED = 10
"""Runs that a refusal names."""
PAGE = 500

REASON = Body((Text("reason", "Kept with the run."),))


async def cancel_run(request: Request) -> Answer:
    """Ends a run: one that waits at once, one that runs as soon as it can be ended. Instead of an id a job's name will
    do while it has one unfinished run. `asked_before`: it had been asked to end already, which changes nothing;
    `kill_at`: what does not end by itself is killed then (null: not known, or nothing is there to kill)."""
    backend = backend_of(request)
    text = plain_name(request.path_params["run"])
    reason, author = (await REASON.read(request))["reason"], author_of(request)
    return Answer(await run_in_threadpool(lambda: _cancel(backend, _the_run(backend, text), author, reason)), 202)


async def cancel_job(request: Request) -> Answer:
    """Ends all unfinished runs of a job, also those that wait."""
    backend = backend_of(request)
    name = plain_name(request.path_params["name"])
    reason, author = (await REASON.read(request))["reason"], author_of(request)
    return Answer({"runs": await run_in_threadpool(lambda: _cancel_all(backend, name, author, reason))}, 202)


def _cancel(backend: Backend, run: str, author: str, reason: str) -> Shown:
    with backend.readable.queries() as queries:
        before = queries.run(run)
    asked_before = before is not None and before.run.cancel is not None and not before.run.status.final
    after = backend.commands.cancel(run, author=author, reason=reason)
    if not asked_before and not after.status.final:
        backend.asked.note(run, backend.now())
    asked_at = backend.asked.at(run)
    return run_json(after) | {
        "asked_before": asked_before,
        "asked_at": when(asked_at),
        "kill_at": when(_kill_at(backend, after, asked_at)),
    }


def _cancel_all(backend: Backend, job: str, author: str, reason: str) -> list[Shown]:
    runs = list(_unfinished(backend, job))
    if not runs:
        if backend.job(job) is None:
            raise NotFound(f"there is no job `{job}`", hint="`schedctl list` has their names")
        raise Refused(f"{job} has no unfinished run", hint=f"schedctl runs {job}")
    done = []
    # What waits goes first: else the end of one run would start the next.
    for run in sorted(runs, key=lambda one: one.status is Status.RUNNING):
        try:
            done.append(_cancel(backend, run.id, author, reason))
        except Refused:  # It ended in the meantime.
            continue
    return done


def _the_run(backend: Backend, text: str) -> str:
    """The full id. Refused if `text` is the name of a job, present or removed, that has several unfinished runs."""
    runs = list(_unfinished(backend, text))
    if len(runs) > 1:
        named = ", ".join(map(_named, runs[:NAMED])) + (f" and {len(runs) - NAMED} more" * (len(runs) > NAMED))
        raise Refused(
            f"{text} has {len(runs)} unfinished runs: {named}",
            hint=f"`schedctl cancel {short(runs[0].id)}` ends one of them, `schedctl cancel {text} --all` all",
        )
    return runs[0].id if runs else backend.commands.find_run(text)


def _unfinished(backend: Backend, job: str) -> Iterator[Run]:
    """Oldest last."""
    which = RunFilter(jobs=(job,), statuses=(Status.PENDING, Status.RUNNING), skips=False)
    cursor = None
    while True:
        with backend.readable.queries() as queries:
            page = queries.history(which, limit=PAGE, cursor=cursor)
        yield from (entry.run for entry in page.entries if entry.run is not None)
        cursor = page.cursor
        if cursor is None:
            return


def _named(run: Run) -> str:
    asked = ", asked to end" if run.cancel is not None else ""
    return f"{short(run.id)} ({run.status}{asked})"


def _kill_at(backend: Backend, run: Run, asked_at: datetime | None) -> datetime | None:
    job = backend.job(run.job)
    if run.status is not Status.RUNNING or asked_at is None or job is None or job.action.kind == "http":
        return None
    return asked_at + job.kill_after


operations = [
    Operation("POST", "/v1/runs/{run}/cancel", cancel_run, Access.OPERATE, ref("Canceled"), body=REASON, status=202),
    Operation(
        "POST",
        "/v1/jobs/{name}/cancel",
        cancel_job,
        Access.OPERATE,
        record(runs=many(ref("Canceled"))),
        body=REASON,
        status=202,
    ),
]
