"""`/v1/jobs`: what there is, one job in full, its next times, and the run that a person starts."""

from __future__ import annotations

from difflib import get_close_matches

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Route

from scheduler.config.written import with_keys_of_the_file
from scheduler.core.commands import IfBusy
from scheduler.core.errors import InvalidInput, NotFound
from scheduler.core.explain import explain
from scheduler.core.model import Cause, Pause, Run, Status
from scheduler.core.queries import JobView, Queries, RunFilter
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.habits import MOST, habits_json
from scheduler.web.inputs import (
    author_of,
    plain_name,
    query_instant,
    query_list,
    query_number,
    query_text,
    read_object,
    text_field,
)
from scheduler.web.job_json import Planned, coming, job_json
from scheduler.web.present import Shown, page_json, run_json, skip_json, waiting_json


def list_jobs(request: Request) -> Answer:
    """`?q=` part of the name, `?state=` words of STATES, `?team=`, `?tag=`."""
    backend, now = backend_of(request), backend_of(request).now()
    wanted = {name: set(query_list(request, name)) for name in ("state", "team", "tag")}
    with backend.readable.queries() as queries:
        shown = [job_json(view, now) for view in queries.jobs(now, q=query_text(request, "q"))]
    if wanted["state"]:
        shown = [job for job in shown if job["state"] in wanted["state"] or _is(job, wanted["state"])]
    if wanted["team"]:
        shown = [job for job in shown if job["team"] in wanted["team"]]
    if wanted["tag"]:
        shown = [job for job in shown if wanted["tag"] & set(job["tags"])]
    return Answer({"jobs": shown, "now": _text(backend)})


def get_job(request: Request) -> Answer:
    """Everything about one job, with its next `?next=5` times and last `?runs=5` entries of history."""
    backend, now = backend_of(request), backend_of(request).now()
    name = plain_name(request.path_params["name"])
    following = query_number(request, "next", 5, 0, 1000)
    recent = query_number(request, "runs", 5, 0, 500)
    with backend.readable.queries() as queries:
        view = find_job(queries, backend, name)
        page = queries.history(RunFilter(jobs=(name,)), limit=recent) if recent else None
        waiting = queries.waiting([entry.run.id for entry in page.entries if entry.run]) if page else {}
        finished = queries.history(RunFilter(jobs=(name,), statuses=(Status.COMPLETED,), skips=False), limit=MOST)
        nodes = [one.node for one in queries.nodes()]
    job = backend.job(name)
    completed = [entry.run for entry in finished.entries if entry.run is not None]
    shown = job_json(view, now) | {
        "definition": with_keys_of_the_file(view.definition),
        "schedule_in_words": None if job is None or job.schedule is None else explain(job.schedule),
        "next": [] if job is None else coming([Planned(job, pauses_of(view))], now, following),
        "recent": [] if page is None else page_json(page, waiting, nodes)["entries"],
        "last_skip": None if view.last_skip is None else skip_json(view.last_skip, nodes),
        "last_result": next((run_json(run) for run in completed if run.result is not None), None),
        "habits": habits_json(completed, view.definition),
    }
    return Answer({"job": shown, "now": _text(backend)})


def list_next(request: Request) -> Answer:
    """The coming occurrences of the named jobs (`?job=`, none: all), by time: `?count=` in sum, `?from=`, `?until=`."""
    backend, now = backend_of(request), backend_of(request).now()
    names = [plain_name(name) for name in query_list(request, "job")]
    count = query_number(request, "count", 10, 1, 10_000)
    after = query_instant(request, "from") or now
    until = query_instant(request, "until")
    with backend.readable.queries() as queries:
        for name in names:
            find_job(queries, backend, name)
        views = queries.jobs(now, names=names or None)
    jobs = [
        Planned(job, pauses_of(view), view.state.next_due_at if after == now else None)
        for view in views
        if view.state.enabled and (job := backend.job(view.state.name)) is not None
    ]
    return Answer({"next": coming(jobs, after, count, until), "now": _text(backend)})


async def start_run(request: Request) -> Answer:
    """Starts a run now: 202 for a new one, 200 if this `Idempotency-Key` has already made it. A payload of null is
    none."""
    backend = backend_of(request)
    name = plain_name(request.path_params["name"])
    body = await read_object(request, ("payload", "reason", "if_busy", "cause"))
    try:
        if_busy = IfBusy(text_field(body, "if_busy") or "refuse")
    except ValueError:
        raise InvalidInput("`if_busy` must be refuse, queue or replace") from None
    cause = text_field(body, "cause") or "api"
    if cause not in ("api", "manual"):
        raise InvalidInput("`cause` must be api or manual")
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= 255 and key.isprintable()):
        raise InvalidInput("`Idempotency-Key` must have 1 to 255 printable characters")

    def start() -> tuple[Run, bool, Shown | None]:
        run, new = backend.commands.run_now(
            name,
            author=author_of(request),
            cause=Cause(cause),
            reason=text_field(body, "reason"),
            payload=body.get("payload"),
            has_payload=body.get("payload") is not None,
            if_busy=if_busy,
            key=key,
        )
        waiting = None
        if run.status is Status.PENDING:
            with backend.readable.queries() as queries:
                waiting = queries.waiting([run.id]).get(run.id)
        return run, new, None if waiting is None else waiting_json(waiting)

    run, new, waiting = await run_in_threadpool(start)
    url = f"/v1/runs/{run.id}"
    shown = {
        "run_id": run.id,
        "job": run.job,
        "status": str(run.status),
        "status_url": url,
        "log_url": f"{url}/log",
        "new": new,
        "queue_position": waiting["ahead"] if waiting and waiting["kind"] == "queue" else None,
        "waiting": waiting,
    }
    return Answer(shown, status_code=202 if new else 200, headers={"Location": url})


def find_job(queries: Queries, backend: Backend, name: str) -> JobView:
    """The job, also a removed one. NotFound names what is close."""
    now = backend.now()
    found = queries.jobs(now, names=[name])
    if found:
        return found[0]
    close = get_close_matches(name, [view.state.name for view in queries.jobs(now)], 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "schedctl list shows all jobs"
    raise NotFound(f"no job is named `{name}`", hint=hint)


def pauses_of(view: JobView) -> list[Pause]:
    return [pause for pause in (view.pause, view.upcoming) if pause is not None]


def _is(job: Shown, states: set[str]) -> bool:
    """A job may be running or paused besides the state that is shown."""
    return ("running" in states and bool(job["running"])) or ("paused" in states and job["pause"] is not None)


def _text(backend: Backend) -> str:
    return backend.now().isoformat(timespec="seconds").replace("+00:00", "Z")


routes = [
    Route("/v1/jobs", list_jobs, methods=["GET"]),
    Route("/v1/jobs/{name}", get_job, methods=["GET"]),
    Route("/v1/jobs/{name}/runs", start_run, methods=["POST"]),
    Route("/v1/next", list_next, methods=["GET"]),
]
