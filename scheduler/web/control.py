"""What changes the daemon's ways: pause, resume, reload; and the audit, which recomputes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.commands import AuditReport, JobAudit, Reloaded
from scheduler.core.errors import InvalidInput
from scheduler.web.answers import Answer
from scheduler.web.backend import backend_of
from scheduler.web.fields import Body, Flag, Instant, Names
from scheduler.web.fields import Text as TextField
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.parameters import Instant as InstantParameter
from scheduler.web.parameters import Text
from scheduler.web.present import Shown, pause_json, when
from scheduler.web.shapes import TEXT, many, record, ref

UNTIL = Instant("until", "When it ends by itself; null: when somebody resumes the job.")
REASON = TextField("reason", "Shown wherever somebody wonders.")
PAUSE = Body((UNTIL, REASON))
PAUSE_MANY = Body((Names("jobs", "All of them, or none."), UNTIL, REASON))
RESUME = Body(())
RESUME_MANY = Body((Names("jobs", "All of them, or none."),))
RELOAD = Body(
    (
        Flag("dry_run", "Only say what it would do."),
        Flag("drop_pending", "Also if removed jobs have waiting runs."),
        TextField("if_hash", "Only if the file's hash begins so.", 200),
    )
)
SINCE = InstantParameter("since", "From when; 24 hours ago if it is not given.")
JOB = Text("job", "Only this job.")


async def pause_job(request: Request) -> Answer:
    """Lets the job rest: its instants are skipped, its waiting runs wait; what runs goes on."""
    body = await PAUSE.read(request)
    return await _pause(request, [plain_name(request.path_params["name"])], body)


async def pause_jobs(request: Request) -> Answer:
    """Lets several jobs rest, all or none."""
    body = await PAUSE_MANY.read(request)
    return await _pause(request, body["jobs"], body)


async def resume_job(request: Request) -> Answer:
    """Ends the job's pause. What was skipped is not made up."""
    await RESUME.read(request)
    return await _resume(request, [plain_name(request.path_params["name"])])


async def resume_jobs(request: Request) -> Answer:
    """Ends the pauses of several jobs."""
    return await _resume(request, (await RESUME_MANY.read(request))["jobs"])


async def reload(request: Request) -> Answer:
    """Puts the daemon's file in force, or says what that would do (`dry_run`)."""
    backend = backend_of(request)
    body = await RELOAD.read(request)
    dry_run, drop_pending, if_hash = body["dry_run"], body["drop_pending"], body["if_hash"] or None

    def act() -> Reloaded:
        return backend.commands.reload(
            author=author_of(request), dry_run=dry_run, drop_pending=drop_pending, if_hash=if_hash
        )

    return Answer(reloaded_json(await run_in_threadpool(act)))


def audit(request: Request) -> Answer:
    """What should have happened against what is recorded."""
    backend = backend_of(request)
    return Answer(audit_json(backend.commands.audit(since=SINCE.read(request), job=JOB.read(request) or None)))


async def _pause(request: Request, jobs: Collection[str], body: dict[str, Any]) -> Answer:
    backend = backend_of(request)
    until, reason = body["until"], body["reason"]
    if until is not None and until <= backend.now():
        raise InvalidInput("`until` is in the past", hint="give an instant to come, or none")
    pauses = await run_in_threadpool(
        lambda: backend.commands.pause(jobs, until=until, reason=reason, author=author_of(request))
    )
    return Answer({"pauses": [pause_json(pause) for pause in pauses]})


async def _resume(request: Request, jobs: Collection[str]) -> Answer:
    backend = backend_of(request)
    resumed = await run_in_threadpool(lambda: backend.commands.resume(jobs, author=author_of(request)))
    return Answer({"resumed": list(resumed)})


def reloaded_json(done: Reloaded) -> Shown:
    return {
        "applied": done.applied,
        "generation": done.generation,
        "hash": done.hash,
        "added": list(done.added),
        "changed": list(done.changed),
        "removed": list(done.removed),
        "unchanged": done.unchanged,
        "pending": {
            name: {
                "occurrences": left.occurrences,
                "payload_runs": left.payload_runs,
                "other_runs": left.other_runs,
                "held_events": left.held_events,
            }
            for name, left in done.pending.items()
        },
        "changes": {name: list(lines) for name, lines in done.changes.items()},
        "warnings": list(done.warnings),
    }


def audit_json(report: AuditReport) -> Shown:
    return {
        "since": when(report.since),
        "until": when(report.until),
        "clean": report.clean,
        "jobs": [_balance(job) for job in report.jobs],
    }


def _balance(job: JobAudit) -> Shown:
    return {
        "job": job.job,
        "clean": job.clean,
        "expected": job.expected,
        "ran": job.ran,
        "skipped": dict(job.skipped),
        "unaccounted": _instants(job.unaccounted),
        "unaccounted_count": job.unaccounted_count,
        "surplus": _instants(job.surplus),
        "not_recomputable": list(job.not_recomputable),
    }


def _instants(instants: Collection[datetime]) -> list[str | None]:
    return [when(instant) for instant in instants]


_PAUSES = record(pauses=many(ref("Pause")))
_RESUMED = record(resumed=many(TEXT))

operations = [
    Operation("POST", "/v1/jobs/{name}/pause", pause_job, Access.OPERATE, _PAUSES, body=PAUSE),
    Operation("POST", "/v1/jobs/{name}/resume", resume_job, Access.OPERATE, _RESUMED, body=RESUME),
    Operation("POST", "/v1/pause", pause_jobs, Access.OPERATE, _PAUSES, body=PAUSE_MANY),
    Operation("POST", "/v1/resume", resume_jobs, Access.OPERATE, _RESUMED, body=RESUME_MANY),
    Operation("POST", "/v1/reload", reload, Access.OPERATE, ref("Reloaded"), body=RELOAD),
    Operation("GET", "/v1/audit", audit, Access.READ, ref("Audit"), query=(SINCE, JOB)),
]
