"""`/v1/runs`: history, one run, its output; cancel and retry."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.model import Output, Run, SkipReason, Status
from scheduler.core.queries import Entry, RunDetail, RunFilter
from scheduler.web.answers import RETRY_AFTER, Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.inputs import (
    author_of,
    plain_name,
    query_flag,
    query_instant,
    query_list,
    query_number,
    query_text,
    read_object,
    text_field,
)
from scheduler.web.present import detail_json, page_json, run_json
from scheduler.web.waiting import POLL, RunWatch

LONGEST_WAIT = 60
"""Seconds that one request may wait; ask again after that."""


def list_runs(request: Request) -> Answer:
    """Newest first: `?job=` `?status=` `?cause=` `?since=` `?until=` `?skips=false` `?limit=50` `?cursor=`."""
    backend = backend_of(request)
    which = RunFilter(
        jobs=tuple(plain_name(name) for name in query_list(request, "job")),
        statuses=tuple(_status(word) for word in query_list(request, "status")),
        causes=query_list(request, "cause"),
        since=query_instant(request, "since"),
        until=query_instant(request, "until"),
        skips=query_flag(request, "skips", default=True),
    )
    limit = query_number(request, "limit", 50, 1, 1000)
    with backend.readable.queries() as queries:
        page = queries.history(which, limit=limit, cursor=query_text(request, "cursor") or None)
        waiting = queries.waiting([entry.run.id for entry in page.entries if entry.run is not None])
        nodes = [one.node for one in queries.nodes()] if any(map(_is_missed, page.entries)) else []
    return Answer(page_json(page, waiting, nodes))


def _is_missed(entry: Entry) -> bool:
    return entry.skip is not None and entry.skip.reason is SkipReason.MISSED


async def get_run(request: Request) -> Answer:
    """One run; `?wait=30` answers when its status is final, or after so many seconds with what it is then."""
    backend = backend_of(request)
    text = plain_name(request.path_params["run"])
    wait = query_number(request, "wait", 0, 0, LONGEST_WAIT)
    detail = await run_in_threadpool(_load, backend, text)
    if wait and not detail.run.status.final:
        detail = await _wait(backend, request.app.state.watch, detail.run.id, wait)
    return Answer(detail_json(detail))


def get_status(request: Request) -> Answer:
    """Only what somebody who polls wants to know; `Retry-After` says when to ask again."""
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
    """The raw bytes of an attempt (`?attempt=`, default: the last one that has output), from `?offset=` on.

    Headers: `Schedctl-Attempt`, `Schedctl-Offset` (where to go on), `Schedctl-Complete` (`true`: nothing follows in
    this attempt), `Schedctl-Status` of the run. Offsets count what the attempt printed; where bytes were left out a
    line says how many."""
    backend = backend_of(request)
    attempt = query_number(request, "attempt", 0, 1, 1_000_000) or None
    offset = query_number(request, "offset", 0, 0, 1 << 60)
    run = _find(backend, plain_name(request.path_params["run"]))
    with backend.readable.queries() as queries:
        detail = queries.run(run)
        if detail is None:
            raise NotFound(f"there is no run `{run}`")
        output = queries.output(run, attempt)
    if attempt is not None and attempt > max(detail.run.attempt, 1):
        raise NotFound(f"run {run} has no attempt {attempt}", hint=f"it has {detail.run.attempt}")
    live = None
    if detail.run.status is Status.RUNNING and attempt in (None, detail.run.attempt):
        live = backend.live_output(run, detail.run.attempt)
        output = live if live is not None or output is None or output.attempt == detail.run.attempt else None
    number = attempt or (output.attempt if output is not None else max(detail.run.attempt, 1))
    running = detail.run.status is Status.RUNNING and number == detail.run.attempt
    body, following = cut(output, offset)
    headers = {
        "Schedctl-Attempt": str(number),
        "Schedctl-Offset": str(following),
        "Schedctl-Complete": "false" if running else "true",
        "Schedctl-Status": str(detail.run.status),
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, media_type="text/plain", headers=headers)


def cut(output: Output | None, offset: int) -> tuple[bytes, int]:
    """What the output holds from `offset` on, and the offset after it."""
    if output is None:
        return b"", offset
    head_end = len(output.head)
    tail_start = head_end + output.omitted
    end = tail_start + len(output.tail)
    if offset >= end:
        return b"", offset
    if offset >= tail_start:
        return output.tail[offset - tail_start :], end
    left_out = tail_start - max(offset, head_end)
    mark = f"\n[… {left_out} bytes left out …]\n".encode() if left_out else b""
    return output.head[offset:] + mark + output.tail, end


async def cancel_run(request: Request) -> Answer:
    backend = backend_of(request)
    text = plain_name(request.path_params["run"])
    reason = text_field(await read_object(request, ("reason",)), "reason")

    def cancel() -> Run:
        return backend.commands.cancel(_find(backend, text), author=author_of(request), reason=reason)

    return Answer(run_json(await run_in_threadpool(cancel)), status_code=202)


async def retry_run(request: Request) -> Answer:
    backend = backend_of(request)
    text = plain_name(request.path_params["run"])
    reason = text_field(await read_object(request, ("reason",)), "reason")

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


def _status(word: str) -> Status:
    try:
        return Status(word.upper())
    except ValueError:
        known = ", ".join(str(status) for status in Status)
        raise InvalidInput(f"no status is called `{word[:40]}`", hint=f"one of {known}") from None


routes = [
    Route("/v1/runs", list_runs, methods=["GET"]),
    Route("/v1/runs/{run}", get_run, methods=["GET"]),
    Route("/v1/runs/{run}/status", get_status, methods=["GET"]),
    Route("/v1/runs/{run}/log", get_log, methods=["GET"]),
    Route("/v1/runs/{run}/cancel", cancel_run, methods=["POST"]),
    Route("/v1/runs/{run}/retry", retry_run, methods=["POST"]),
]
