"""`/v1/jobs`: what there is, one job in full, its next times, and the run that a person starts."""

from __future__ import annotations

from difflib import get_close_matches

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from scheduler.config.written import with_keys_of_the_file
from scheduler.core.access import Access
from scheduler.core.commands import IfBusy
from scheduler.core.errors import NotFound
from scheduler.core.explain import explain
from scheduler.core.model import Cause, Pause, Run, Status
from scheduler.core.queries import JobView, Queries, RunFilter
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.fields import Anything, Body
from scheduler.web.fields import Text as TextField
from scheduler.web.habits import MOST, habits_json
from scheduler.web.inputs import plain_name
from scheduler.web.job_json import STATES, Planned, coming, job_json
from scheduler.web.operation import Operation, author_of
from scheduler.web.parameters import Header, Instant, Number, Text, Words
from scheduler.web.present import Shown, page_json, run_json, skip_json, waiting_json
from scheduler.web.schemas import INSTANT, many, record, ref

Q = Text("q", "Part of the name, in any case.")
STATE = Words("state", "Only in these states.", STATES)
TEAM = Words("team", "Only of these teams.")
TAG = Words("tag", "Only with one of these tags.")
NEXT = Number("next", "So many coming occurrences.", 5, 0, 1000)
RUNS = Number("runs", "So many of the last entries of its history.", 5, 0, 500)
JOB = Words("job", "Only of these jobs; none: of all.")
COUNT = Number("count", "So many, in sum.", 10, 1, 10_000)
FROM = Instant("from", "After that; now if it is not given.")
UNTIL = Instant("until", "Not after that.")
KEY = Header("Idempotency-Key", "The same key and payload give the same run; with another payload it is refused.")
START = Body(
    (
        Anything("payload", "What the run is about; null is none."),
        TextField("reason", "Kept with the run."),
        TextField("if_busy", "While the job has an unfinished run.", of=tuple(IfBusy)),
        TextField("cause", "`manual`: for a person, whom pauses do not hold up.", of=("api", "manual")),
    )
)


def list_jobs(request: Request) -> Answer:
    """The jobs, by name."""
    backend, now = backend_of(request), backend_of(request).now()
    states, teams, tags = (set(one.read(request)) for one in (STATE, TEAM, TAG))
    with backend.readable.queries() as queries:
        shown = [job_json(view, now) for view in queries.jobs(now, q=Q.read(request))]
    if states:
        shown = [job for job in shown if job["state"] in states or _is(job, states)]
    if teams:
        shown = [job for job in shown if job["team"] in teams]
    if tags:
        shown = [job for job in shown if tags & set(job["tags"])]
    return Answer({"jobs": shown, "now": _text(backend)})


def get_job(request: Request) -> Answer:
    """Everything about one job, with its coming times and the last entries of its history."""
    backend, now = backend_of(request), backend_of(request).now()
    name = plain_name(request.path_params["name"])
    following = NEXT.read(request)
    recent = RUNS.read(request)
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
    """Coming occurrences, by time."""
    backend, now = backend_of(request), backend_of(request).now()
    names = [plain_name(name) for name in JOB.read(request)]
    count = COUNT.read(request)
    after = FROM.read(request) or now
    until = UNTIL.read(request)
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
    body = await START.read(request)
    key = KEY.read(request)

    def start() -> tuple[Run, bool, Shown | None, str | None]:
        run, new = backend.commands.run_now(
            name,
            author=author_of(request),
            cause=Cause(body["cause"] or "api"),
            reason=body["reason"],
            payload=body["payload"],
            has_payload=body["payload"] is not None,
            if_busy=IfBusy(body["if_busy"] or "refuse"),
            key=key,
        )
        if run.status is not Status.PENDING:
            return run, new, None, None
        with backend.readable.queries() as queries:
            waiting = queries.waiting([run.id]).get(run.id)
            holdup = _holdup(backend, queries, run)
        return run, new, None if waiting is None else waiting_json(waiting), holdup

    run, new, waiting, holdup = await run_in_threadpool(start)
    url = f"/v1/runs/{run.id}"
    shown = {
        "run_id": run.id,
        "job": run.job,
        "status": str(run.status),
        "status_url": url,
        "log_url": f"{url}/log",
        "new": new,
        "queue_position": waiting["ahead"] if waiting and waiting["kind"] == "queue" else None,
        "estimated_wait_s": None,
        "waiting": waiting,
        "holdup": holdup,
    }
    return Answer(shown, status_code=202 if new else 200, headers={"Location": url})


def _holdup(backend: Backend, queries: Queries, run: Run) -> str | None:
    """Why nobody will start this run before something changes; None if somebody will."""
    reason = backend.holdup()
    if reason is None:
        return None
    others = (view.node for view in queries.nodes() if view.node.state == "live" and view.node.id != backend.node())
    return None if any(one.queues is None or run.queue in one.queues for one in others) else reason


def find_job(queries: Queries, backend: Backend, name: str) -> JobView:
    """The job, also a removed one. NotFound names what is close."""
    now = backend.now()
    found = queries.jobs(now, names=[name])
    if found:
        return found[0]
    close = get_close_matches(name, [view.state.name for view in queries.jobs(now)], 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`schedctl list` shows all jobs"
    raise NotFound(f"no job is named `{name}`", hint=hint)


def pauses_of(view: JobView) -> list[Pause]:
    return [pause for pause in (view.pause, view.upcoming) if pause is not None]


def _is(job: Shown, states: set[str]) -> bool:
    """A job may be running or paused besides the state that is shown."""
    return ("running" in states and bool(job["running"])) or ("paused" in states and job["pause"] is not None)


def _text(backend: Backend) -> str:
    return backend.now().isoformat(timespec="seconds").replace("+00:00", "Z")


operations = [
    Operation(
        "GET",
        "/v1/jobs",
        list_jobs,
        Access.FACTS,
        record(jobs=many(ref("Job")), now=INSTANT),
        query=(Q, STATE, TEAM, TAG),
    ),
    Operation("GET", "/v1/jobs/{name}", get_job, Access.FACTS, record(job=ref("Job"), now=INSTANT), query=(NEXT, RUNS)),
    Operation(
        "POST",
        "/v1/jobs/{name}/runs",
        start_run,
        Access.OPERATE,
        ref("Accepted"),
        headers=(KEY,),
        body=START,
        status=202,
        repeated=True,
    ),
    Operation(
        "GET",
        "/v1/next",
        list_next,
        Access.READ,
        record(next=many(ref("Occurrence")), now=INSTANT),
        query=(JOB, COUNT, FROM, UNTIL),
    ),
]
