"""What the daemon is up to: `/v1/status`, nodes, generations, queues, dead letters, the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.errors import Unavailable
from scheduler.core.queries import JobView, Queries
from scheduler.core.remark import Remark
from scheduler.web.answers import Answer
from scheduler.web.attention import (
    add_last_lines,
    channel_problems,
    daemon_problems,
    problems_of,
    scan_problems,
    source_problems,
)
from scheduler.web.backend import Backend, backend_of
from scheduler.web.health import run_checks
from scheduler.web.job_json import STATES, state_of
from scheduler.web.notifications import unreadable
from scheduler.web.operation import Operation
from scheduler.web.paging import CURSOR, LIMIT
from scheduler.web.parameters import Number, Text
from scheduler.web.present import Shown, generation_json, node_json, page_json, queue_json, when
from scheduler.web.shapes import COUNT, INSTANT, OBJECT, TEXT, many, record, ref

GENERATIONS = Number("limit", "So many of the newest.", 20, 1, 1000)
JOB = Text("job", "Only of this job.")
_STORED = (
    "jobs",
    "states",
    "running",
    "waiting",
    "paused",
    "paused_sources",
    "dead_letters",
    "next_run_at",
    "configuration",
    "nodes",
)
"""What only the database knows of the status."""


def status(request: Request) -> Answer:
    """What is wrong (`problems`), whether anything is (`ok`), and what there is. While the database cannot be read what
    only it knows is null: then there is at least the problem that keeps it from answering."""
    backend = backend_of(request)
    _, checks = run_checks(backend)
    try:
        found = _facts(backend)
    except Unavailable as error:
        found = _unknown(error)
    problems = [*daemon_problems(backend.remarks()), *found.pop("problems")]
    untold = {"database", "disk"}.isdisjoint(one["about"] for one in problems)
    if found["jobs"] is None and untold:
        problems.insert(0, found["unread"])
    problems += source_problems(backend.receptions.all())
    del found["unread"]
    return Answer(
        {
            "ok": not problems,
            "version": backend.version,
            "node": backend.node(),
            "checks": checks,
            "problems": problems,
            **found,
        }
    )


def _facts(backend: Backend) -> Shown:
    """What the database knows. Raises Unavailable."""
    now = backend.now()
    with backend.readable.queries() as queries:
        views = queries.jobs(now)
        queues, nodes = queries.queues(), queries.nodes()
        letters, held = queries.gauges(now).dead_letters, queries.held()
        problems = problems_of(views, queues, nodes, letters, now, queries.held_up() if letters else {})
        problems += _scan_problems(backend, queries, now)
        problems += _channel_problems(backend, queries)
        add_last_lines(problems, queries)
        generations = queries.generations(1)
    live = [view for view in nodes if view.node.state == "live"]
    nobody = backend.holdup() is not None and all(view.node.id == backend.node() for view in live)
    counts = dict.fromkeys(STATES, 0)
    for view in views:
        counts[state_of(view, now)] += 1
    return {
        "now": when(now),
        "problems": problems,
        "jobs": len(views),
        "states": counts,
        # By node: also what still runs of jobs that are gone.
        "running": sum(view.running for view in nodes),
        "waiting": sum(view.waiting for view in views),
        "paused": sum(view.pause is not None for view in views),
        "paused_sources": _paused_sources(backend, held),
        "dead_letters": sum(letters.values()),
        "next_run_at": None if nobody else when(min(filter(None, map(_next_run, views)), default=None)),
        "configuration": generation_json(generations[0]) if generations else None,
        "nodes": [node_json(view) for view in live],
        "unread": None,
    }


def _paused_sources(backend: Backend, held: Mapping[str, int]) -> list[Shown]:
    """Sources that make no runs now, with the number of events that wait for that."""
    configuration = backend.configuration()
    sources = () if configuration is None else configuration.sources.values()
    return [{"source": one.name, "held": held.get(one.name, 0)} for one in sources if one.paused]


def _scan_problems(backend: Backend, queries: Queries, now: datetime) -> list[Shown]:
    configuration = backend.configuration()
    jobs = {} if configuration is None else configuration.jobs
    scans = [name for name, job in jobs.items() if job.compensate is not None]
    return scan_problems(queries.scans(scans), queries.scan_holes(), now) if scans else []


def _channel_problems(backend: Backend, queries: Queries) -> list[Shown]:
    configuration = backend.configuration()
    channels = {} if configuration is None else configuration.channels
    if not channels:
        return []
    unread = {name: why for name, one in channels.items() if (why := unreadable(one)) is not None}
    return channel_problems(channels.values(), {view.name: view for view in queries.channels()}, unread)


def _unknown(error: Unavailable) -> Shown:
    now = datetime.now(UTC)
    unread = Remark("database", str(error), now, "schedctl db status")
    (problem,) = daemon_problems([unread])
    return {"now": when(now), "problems": [], "unread": problem, **dict.fromkeys(_STORED)}


def _next_run(view: JobView) -> datetime | None:
    """Its next instant, if that is going to run as things stand."""
    due = view.state.next_due_at
    if due is None or not view.state.enabled:
        return None
    pauses = [pause for pause in (view.pause, view.upcoming) if pause is not None]
    rests = any(pause.start <= due and (pause.until is None or due < pause.until) for pause in pauses)
    return None if rests else due


def nodes(request: Request) -> Answer:
    """The daemons that share this database."""
    with backend_of(request).readable.queries() as queries:
        return Answer({"nodes": [node_json(view) for view in queries.nodes()], "now": when(backend_of(request).now())})


def generations(request: Request) -> Answer:
    """Configurations that were in force, newest first."""
    limit = GENERATIONS.read(request)
    with backend_of(request).readable.queries() as queries:
        return Answer({"generations": [generation_json(line) for line in queries.generations(limit)]})


def queues(request: Request) -> Answer:
    """Queues: their limits, and what is in them."""
    with backend_of(request).readable.queries() as queries:
        return Answer({"queues": [queue_json(view) for view in queries.queues()]})


def dead_letters(request: Request) -> Answer:
    """Runs with a payload that gave up and that nobody has retried or discarded, newest first, with their payloads.

    `holds_up` is the number of runs that wait behind it, because its job says `on_dead: hold`."""
    job = JOB.read(request) or None
    limit = LIMIT.read(request)
    with backend_of(request).readable.queries() as queries:
        page = queries.dead_letters(job, limit=limit, cursor=CURSOR.read(request) or None)
        behind = queries.held_up([entry.run.id for entry in page.entries if entry.run is not None])
    shown = page_json(page, {})
    for line, entry in zip(shown["entries"], page.entries, strict=True):
        line["payload"] = None if entry.run is None else entry.run.payload
        line["holds_up"] = 0 if entry.run is None else behind.get((entry.run.job, entry.run.id), 0)
    return Answer(shown)


def database(request: Request) -> Answer:
    """Kind, address without password, schema revision, size in bytes, rows per table. While it does not answer, why
    (`away`, `hint`) and null for what only it knows; `look` is what to type on the daemon's machine."""
    found = backend_of(request).readable.db_status()
    return Answer(
        {
            "kind": found.kind,
            "url": found.url,
            "revision": found.revision,
            "oldest_release": found.oldest_release,
            "size": found.size,
            "rows": None if found.rows is None else dict(found.rows),
            "away": found.away,
            "hint": found.hint,
            "look": found.look,
        }
    )


operations = [
    Operation("GET", "/v1/status", status, Access.FACTS, ref("Status")),
    Operation("GET", "/v1/nodes", nodes, Access.FACTS, record(nodes=many(ref("Node")), now=INSTANT)),
    Operation(
        "GET",
        "/v1/generations",
        generations,
        Access.READ,
        record(generations=many(ref("Generation"))),
        query=(GENERATIONS,),
    ),
    Operation("GET", "/v1/queues", queues, Access.FACTS, record(queues=many(ref("Queue")))),
    Operation("GET", "/v1/dead-letters", dead_letters, Access.READ, ref("Page"), query=(JOB, LIMIT, CURSOR)),
    Operation(
        "GET",
        "/v1/database",
        database,
        Access.READ,
        record(
            kind=TEXT,
            url=TEXT,
            revision=TEXT,
            oldest_release=TEXT,
            size=COUNT,
            rows=OBJECT,
            away=TEXT,
            hint=TEXT,
            look=TEXT,
        ),
    ),
]
