"""Making amends: a miss that is known, instants that are run after all, dead letters that are tried again or let go."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.commands import Backfilled
from scheduler.core.errors import InvalidInput, SchedulerError
from scheduler.core.model import Run
from scheduler.web.answers import Answer, problem_of
from scheduler.web.backend import backend_of
from scheduler.web.fields import Body, Flag, Instant, Names, Number, Text
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.present import Shown, when
from scheduler.web.shapes import INSTANT, TEXT, many, record, ref

MOST = 1_000
"""Dead letters in one request."""

REASON = Text("reason", "Kept, and shown wherever somebody wonders.")
ACK = Body((REASON,))
BACKFILL = Body(
    (
        Instant("from", "The first instant that may run; what follows the last success if it is not given."),
        Instant("until", "The last one; now if it is not given."),
        Number("max", "More than so many are refused.", 100, 1, 10_000),
        Flag("dry_run", "Only say which would run."),
        REASON,
    )
)
LETTERS = Body(
    (
        Names("runs", "These.", required=False, most=MOST),
        Text("job", "All of this job; either this or `runs`.", 200),
        REASON,
    )
)


async def ack(request: Request) -> Answer:
    """The job's miss is known: nothing is expected any more of the instants that have come; the next one counts
    again."""
    backend = backend_of(request)
    name = plain_name(request.path_params["name"])
    reason = (await ACK.read(request))["reason"]
    done = await run_in_threadpool(lambda: backend.commands.ack(name, reason=reason, author=author_of(request)))
    shown = {
        "job": name,
        "from": when(done.ack.first),
        "until": when(done.ack.last),
        "reason": reason,
        "author": done.ack.author,
        "deadline_at": when(done.deadline),
    }
    return Answer(shown)


async def backfill(request: Request) -> Answer:
    """Runs for instants of the past that have neither completed nor an unfinished run, oldest first; or, with
    `dry_run`, which these would be."""
    backend = backend_of(request)
    name = plain_name(request.path_params["name"])
    body = await BACKFILL.read(request)

    def fill() -> Backfilled:
        return backend.commands.backfill(
            name,
            body["from"],
            body["until"] or backend.now(),
            most=body["max"],
            dry_run=body["dry_run"],
            reason=body["reason"],
            author=author_of(request),
        )

    done = await run_in_threadpool(fill)
    return Answer(backfilled_json(done, dry_run=body["dry_run"]), status_code=200 if body["dry_run"] else 202)


def backfilled_json(done: Backfilled, *, dry_run: bool) -> Shown:
    runs = done.runs or (None,) * len(done.instants)
    return {
        "job": done.job,
        "dry_run": dry_run,
        "runs": [
            {"scheduled_for": when(instant), "run_id": run} for instant, run in zip(done.instants, runs, strict=True)
        ],
        "left_out": [{"scheduled_for": when(one.instant), "why": one.why, "run_id": one.run} for one in done.left_out],
    }


async def discard_letters(request: Request) -> Answer:
    """Lets dead letters go: nobody needs them any more."""
    backend = backend_of(request)
    runs, job, _ = await _letters(request)
    gone = await run_in_threadpool(lambda: backend.commands.discard(runs, job, author=author_of(request)))
    return Answer({"discarded": gone})


async def retry_letters(request: Request) -> Answer:
    """A new run of each dead letter, with its payload; one that cannot be retried does not concern the others."""
    backend = backend_of(request)
    runs, job, reason = await _letters(request)

    def retry() -> list[Shown]:
        wanted = runs
        if job is not None:
            with backend.readable.queries() as queries:
                page = queries.dead_letters(job, limit=MOST)
            wanted = [entry.run.id for entry in reversed(page.entries) if entry.run is not None]
        done = backend.commands.retry_all(wanted, author=author_of(request), reason=reason)
        return [_retried(run, made) for run, made in done]

    done = await run_in_threadpool(retry)
    return Answer({"retried": done}, status_code=202)


def _retried(run: str, made: Run | SchedulerError) -> Shown:
    if isinstance(made, SchedulerError):
        return {"retry_of": run, "run_id": None, "error": problem_of(made).content}
    return {"retry_of": run, "run_id": made.id, "error": None}


async def _letters(request: Request) -> tuple[list[str], str | None, str]:
    body = await LETTERS.read(request)
    if bool(body["runs"]) == bool(body["job"]):
        raise InvalidInput("give `runs` or `job`", hint="GET /v1/dead-letters lists them")
    return body["runs"] or [], body["job"] or None, body["reason"]


operations = [
    Operation(
        "POST",
        "/v1/jobs/{name}/ack",
        ack,
        Access.OPERATE,
        record(job=TEXT, **{"from": INSTANT}, until=INSTANT, reason=TEXT, author=TEXT, deadline_at=INSTANT),
        body=ACK,
    ),
    Operation(
        "POST",
        "/v1/jobs/{name}/backfill",
        backfill,
        Access.OPERATE,
        ref("Backfilled"),
        body=BACKFILL,
        status=202,
        repeated=True,
    ),
    Operation(
        "POST",
        "/v1/dead-letters/discard",
        discard_letters,
        Access.OPERATE,
        record(discarded=many(TEXT)),
        body=LETTERS,
    ),
    Operation(
        "POST",
        "/v1/dead-letters/retry",
        retry_letters,
        Access.OPERATE,
        record(retried=many(record(retry_of=TEXT, run_id=TEXT, error={}))),
        body=LETTERS,
        status=202,
    ),
]
