"""`/v1/jobs`: what there is, one job in full, its next times, and the run that a person starts."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches

from starlette.requests import Request

from scheduler.config.written import with_keys_of_the_file
from scheduler.core.access import Access
from scheduler.core.errors import NotFound
from scheduler.core.explain import explain
from scheduler.core.model import Pause, Status
from scheduler.core.queries import JobView, Queries, RunFilter
from scheduler.web.answers import Answer
from scheduler.web.attention import problem_of_job
from scheduler.web.backend import Backend, backend_of
from scheduler.web.habits import MOST, habits_json
from scheduler.web.inputs import plain_name
from scheduler.web.job_json import STATES, Planned, coming, expected_json, flip_json, job_json
from scheduler.web.operation import Operation
from scheduler.web.parameters import Instant, Number, Text, Words
from scheduler.web.present import Shown, page_json, run_json, skip_json
from scheduler.web.shapes import INSTANT, many, record, ref

Q = Text("q", "Part of the name, in any case.")
STATE = Words("state", "Only in these states.", STATES)
TEAM = Words("team", "Only of these teams.")
TAG = Words("tag", "Only with one of these tags.")
NEXT = Number("next", "So many coming occurrences.", 5, 0, 1000)
RUNS = Number("runs", "So many of the last entries of its history.", 5, 0, 500)
JOB = Words("job", "Only of these jobs; none: of all.")
FLIPS = 10
"""So many of the last changes of its state."""
COUNT = Number("count", "So many, in sum.", 10, 1, 10_000)
FROM = Instant("from", "After that; now if it is not given.")
UNTIL = Instant("until", "Not after that.")


def list_jobs(request: Request) -> Answer:
    """The jobs, by name."""
    backend, now = backend_of(request), backend_of(request).now()
    states, teams, tags = (set(one.read(request)) for one in (STATE, TEAM, TAG))
    with backend.readable.queries() as queries:
        shown = [_job(backend, view, now) for view in queries.jobs(now, q=Q.read(request))]
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
        problem = problem_of_job(view, queries, now)
        flips = queries.flips(name, FLIPS)
    job = backend.job(name)
    completed = [entry.run for entry in finished.entries if entry.run is not None]
    shown = _job(backend, view, now) | {
        "definition": with_keys_of_the_file(view.definition),
        "schedule_in_words": None if job is None or job.schedule is None else explain(job.schedule),
        "next": [] if job is None else coming([Planned(job, pauses_of(view))], now, following),
        "recent": [] if page is None else page_json(page, waiting, nodes)["entries"],
        "last_skip": None if view.last_skip is None else skip_json(view.last_skip, nodes),
        "last_result": next((run_json(run) for run in completed if run.result is not None), None),
        "problem": problem,
        "flips": [flip_json(one) for one in flips],
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


def _job(backend: Backend, view: JobView, now: datetime) -> Shown:
    job = backend.job(view.state.name)
    return job_json(view, now, _paused_source(backend, view)) | expected_json(job, view, now)


def _is(job: Shown, states: set[str]) -> bool:
    """A job may be running or paused, itself or its source, besides the state that is shown."""
    rests = job["pause"] is not None or job["paused_source"] is not None
    return ("running" in states and bool(job["running"])) or ("paused" in states and rests)


def _paused_source(backend: Backend, view: JobView) -> str | None:
    """The source whose events it waits for, if that is paused."""
    configuration, job = backend.configuration(), backend.job(view.state.name)
    if configuration is None or job is None or job.on_event is None:
        return None
    source = configuration.sources.get(job.on_event.source)
    return source.name if source is not None and source.paused else None


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
        "GET",
        "/v1/next",
        list_next,
        Access.READ,
        record(next=many(ref("Occurrence")), now=INSTANT),
        query=(JOB, COUNT, FROM, UNTIL),
    ),
]
