"""`/v1/runs`: history, one run, its output; retry."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from scheduler.core.access import Access
from scheduler.core.errors import NotFound
from scheduler.core.model import Cause, Run, SkipReason, Status
from scheduler.core.queries import Entry, RunDetail, RunFilter
from scheduler.web.answers import RETRY_AFTER, Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.fields import Body
from scheduler.web.fields import Text as TextField
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.output import cut, printed
from scheduler.web.paging import CURSOR, LIMIT
from scheduler.web.parameters import Flag, Instant, Number, Words
from scheduler.web.present import detail_json, page_json, run_json
from scheduler.web.shapes import TEXT, ref
from scheduler.web.waiting import POLL, RunWatch

LONGEST_WAIT = 60
"""Seconds that one request may wait; ask again after that."""

JOB = Words("job", "Only these jobs.")
STATUS = Words("status", "Only with these statuses.", tuple(Status), fold=True)
CAUSE = Words("cause", "Only of these causes; skips count as `schedule`.", tuple(Cause))
SINCE = Instant("since", "Not before that.")
UNTIL = Instant("until", "Before that.")
SKIPS = Flag("skips", "Also what was skipped.", True)
WAIT = Number("wait", "Answer when the status is final, or after so many seconds.", 0, 0, LONGEST_WAIT)
ATTEMPT = Number("attempt", "Of this attempt; 0: of the last one of which it is known.", 0, 0, 1_000_000)
OFFSET = Number("offset", "From there on.", 0, 0, 10**18 - 1)
REASON = Body((TextField("reason", "Kept with the run."),))


def list_runs(request: Request) -> Answer:
    """What ran and what was skipped, the last recorded first, on a page and over all pages: `at` is when a run was made
    and when a range of skips began. What is made up for late stands where it was recorded. While new entries come a
    cursor neither leaves out nor repeats anything."""
    backend = backend_of(request)
    which = RunFilter(
        jobs=JOB.read(request),
        statuses=tuple(Status(word) for word in STATUS.read(request)),
        causes=CAUSE.read(request),
        since=SINCE.read(request),
        until=UNTIL.read(request),
        skips=SKIPS.read(request),
    )
    limit = LIMIT.read(request)
    with backend.readable.queries() as queries:
        page = queries.history(which, limit=limit, cursor=CURSOR.read(request) or None)
        waiting = queries.waiting([entry.run.id for entry in page.entries if entry.run is not None])
        nodes = [one.node for one in queries.nodes()] if any(map(_is_missed, page.entries)) else []
    return Answer(page_json(page, waiting, nodes))


def _is_missed(entry: Entry) -> bool:
    return entry.skip is not None and entry.skip.reason is SkipReason.MISSED


async def get_run(request: Request) -> Answer:
    """One run, with its payload and attempts. With `wait` the answer comes when its status is final, or after so many
    seconds with what it is then."""
    backend = backend_of(request)
    text = plain_name(request.path_params["run"])
    wait = WAIT.read(request)
    detail = await run_in_threadpool(_load, backend, text)
    if wait and not detail.run.status.final:
        detail = await _wait(backend, request.app.state.watch, detail.run.id, wait)
    return Answer(detail_json(detail))


def get_status(request: Request) -> Answer:
    """Only what somebody who polls wants to know. `Retry-After` says when to ask again."""
    run = _load(backend_of(request), plain_name(request.path_params["run"])).run
    shown = {"status": str(run.status), "progress": run.progress, "message": run.message}
    return Answer(shown, headers={} if run.status.final else {"Retry-After": RETRY_AFTER})


async def _wait(backend: Backend, watch: RunWatch, run: str, seconds: int) -> RunDetail:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    with watch.watch(run) as changed:
        while True:
            changed.clear()
            detail = await run_in_threadpool(_load, backend, run)
            left = end - loop.time()
            if detail.run.status.final or left <= 0:
                return detail
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(left, POLL))


def get_log(request: Request) -> Response:
    """What an attempt has printed, as raw bytes.

    Headers: `Schedctl-Attempt`, `Schedctl-Offset` (where to go on), `Schedctl-Complete` (`true`: nothing follows in
    this attempt), `Schedctl-Status` of the run. Offsets count what the attempt printed; where bytes were left out a
    line says how many."""
    backend = backend_of(request)
    attempt = ATTEMPT.read(request) or None
    offset = OFFSET.read(request)
    run = _find(backend, plain_name(request.path_params["run"]))
    found = printed(backend, run, attempt)
    body, following = cut(found.output, offset)
    headers = {
        "Schedctl-Attempt": str(found.attempt),
        "Schedctl-Offset": str(following),
        "Schedctl-Complete": "false" if found.running else "true",
        "Schedctl-Status": str(found.detail.run.status),
    }
    return Response(body, media_type="text/plain", headers=headers)


async def retry_run(request: Request) -> Answer:
    """A new run of a finished one, with its payload; a run that waits for its next attempt runs now."""
    backend = backend_of(request)
    text = plain_name(request.path_params["run"])
    reason = (await REASON.read(request))["reason"]

    def retry() -> Run:
        return backend.commands.retry(_find(backend, text), author=author_of(request), reason=reason)

    run = await run_in_threadpool(retry)
    return Answer(run_json(run), status_code=202, headers={"Location": f"/v1/runs/{run.id}"})


def _load(backend: Backend, text: str) -> RunDetail:
    with backend.readable.queries() as queries:
        detail = queries.run(text)
        if detail is None:
            detail = queries.run(_find(backend, text))
    if detail is None:
        raise NotFound(f"there is no run `{text}`")
    return detail


def _find(backend: Backend, text: str) -> str:
    """The full id; `text` may be an id, its end, or a job's name."""
    return backend.commands.find_run(text)


operations = [
    Operation(
        "GET",
        "/v1/runs",
        list_runs,
        Access.FACTS,
        ref("Page"),
        query=(JOB, STATUS, CAUSE, SINCE, UNTIL, SKIPS, LIMIT, CURSOR),
    ),
    Operation("GET", "/v1/runs/{run}", get_run, Access.FACTS, ref("RunDetail"), query=(WAIT,)),
    Operation("GET", "/v1/runs/{run}/status", get_status, Access.FACTS, ref("RunStatus")),
    Operation("GET", "/v1/runs/{run}/log", get_log, Access.READ, TEXT, query=(ATTEMPT, OFFSET), media="text/plain"),
    Operation("POST", "/v1/runs/{run}/retry", retry_run, Access.OPERATE, ref("Run"), body=REASON, status=202),
]
