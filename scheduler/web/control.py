"""What changes the daemon's ways: pause, resume, reload; and the audit, which recomputes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from scheduler.core.commands import AuditReport, JobAudit, Reloaded
from scheduler.core.errors import InvalidInput
from scheduler.web.answers import Answer
from scheduler.web.backend import backend_of
from scheduler.web.inputs import (
    author_of,
    flag_field,
    instant_field,
    names_field,
    plain_name,
    query_instant,
    query_text,
    read_object,
    text_field,
)
from scheduler.web.present import Shown, pause_json, when


async def pause_job(request: Request) -> Answer:
    body = await read_object(request, ("until", "reason"))
    return await _pause(request, [plain_name(request.path_params["name"])], body)


async def pause_jobs(request: Request) -> Answer:
    """Several at once, all or none: `{"jobs": [...], "until": ..., "reason": ...}`."""
    body = await read_object(request, ("jobs", "until", "reason"))
    return await _pause(request, names_field(body, "jobs"), body)


async def resume_job(request: Request) -> Answer:
    await read_object(request, ())
    return await _resume(request, [plain_name(request.path_params["name"])])


async def resume_jobs(request: Request) -> Answer:
    return await _resume(request, names_field(await read_object(request, ("jobs",)), "jobs"))


async def reload(request: Request) -> Answer:
    """Puts the daemon's file in force, or says what that would do (`dry_run`)."""
    backend = backend_of(request)
    body = await read_object(request, ("dry_run", "drop_pending", "if_hash"))
    dry_run, drop_pending = flag_field(body, "dry_run"), flag_field(body, "drop_pending")
    if_hash = text_field(body, "if_hash", 200) or None

    def act() -> Reloaded:
        return backend.commands.reload(
            author=author_of(request), dry_run=dry_run, drop_pending=drop_pending, if_hash=if_hash
        )

    return Answer(reloaded_json(await run_in_threadpool(act)))


def audit(request: Request) -> Answer:
    """Expected against recorded, `?since=` (default: 24 hours), `?job=`."""
    backend = backend_of(request)
    job = query_text(request, "job") or None
    return Answer(audit_json(backend.commands.audit(since=query_instant(request, "since"), job=job)))


async def _pause(request: Request, jobs: Collection[str], body: dict[str, object]) -> Answer:
    backend = backend_of(request)
    until = instant_field(body, "until")
    reason = text_field(body, "reason")
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
            name: {"occurrences": occurrences, "payload_runs": payload_runs}
            for name, (occurrences, payload_runs) in done.pending.items()
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


routes = [
    Route("/v1/jobs/{name}/pause", pause_job, methods=["POST"]),
    Route("/v1/jobs/{name}/resume", resume_job, methods=["POST"]),
    Route("/v1/pause", pause_jobs, methods=["POST"]),
    Route("/v1/resume", resume_jobs, methods=["POST"]),
    Route("/v1/reload", reload, methods=["POST"]),
    Route("/v1/audit", audit, methods=["GET"]),
]
