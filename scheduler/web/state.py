"""What the daemon is up to: `/v1/status`, nodes, generations, queues, dead letters, the database."""

from __future__ import annotations

from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.web.answers import Answer
from scheduler.web.attention import add_last_lines, daemon_problems, problems_of
from scheduler.web.backend import backend_of
from scheduler.web.health import run_checks
from scheduler.web.job_json import STATES, state_of
from scheduler.web.operation import Operation
from scheduler.web.paging import CURSOR, LIMIT
from scheduler.web.parameters import Number, Text
from scheduler.web.present import generation_json, node_json, page_json, queue_json, when
from scheduler.web.schemas import COUNT, INSTANT, OBJECT, TEXT, many, record, ref

GENERATIONS = Number("limit", "So many of the newest.", 20, 1, 1000)
JOB = Text("job", "Only of this job.")


def status(request: Request) -> Answer:
    """What is wrong (`problems`), whether anything is (`ok`), and what there is."""
    backend, now = backend_of(request), backend_of(request).now()
    _, checks = run_checks(backend)
    with backend.readable.queries() as queries:
        views = queries.jobs(now)
        queues, nodes = queries.queues(), queries.nodes()
        gauges = queries.gauges(now)
        letters = gauges.dead_letters
        problems = problems_of(views, queues, nodes, letters, now)
        add_last_lines(problems, queries)
        generations = queries.generations(1)
    problems = [*daemon_problems(backend.remarks()), *problems]
    counts = dict.fromkeys(STATES, 0)
    for view in views:
        counts[state_of(view, now)] += 1
    return Answer(
        {
            "ok": not problems,
            "now": when(now),
            "version": backend.version,
            "node": backend.node(),
            "checks": checks,
            "problems": problems,
            "jobs": len(views),
            "states": counts,
            "running": sum(len(view.running) for view in views),
            "waiting": sum(view.waiting for view in views),
            "paused": sum(view.pause is not None for view in views),
            "dead_letters": sum(letters.values()),
            "next_run_at": when(
                min((v.state.next_due_at for v in views if v.state.next_due_at and v.state.enabled), default=None)
            ),
            "configuration": generation_json(generations[0]) if generations else None,
            "nodes": [node_json(node) for node in nodes if node.node.state == "live"],
        }
    )


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
    """Runs with a payload that gave up and that nobody has retried or discarded, newest first, with their payloads."""
    job = JOB.read(request) or None
    limit = LIMIT.read(request)
    with backend_of(request).readable.queries() as queries:
        page = queries.dead_letters(job, limit=limit, cursor=CURSOR.read(request) or None)
    shown = page_json(page, {})
    for line, entry in zip(shown["entries"], page.entries, strict=True):
        line["payload"] = None if entry.run is None else entry.run.payload
    return Answer(shown)


def database(request: Request) -> Answer:
    """Kind, address without password, schema revision, size in bytes, rows per table."""
    found = backend_of(request).readable.db_status()
    return Answer(
        {
            "kind": found.kind,
            "url": found.url,
            "revision": found.revision,
            "oldest_release": found.oldest_release,
            "size": found.size,
            "rows": dict(found.rows),
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
        record(kind=TEXT, url=TEXT, revision=TEXT, oldest_release=TEXT, size=COUNT, rows=OBJECT),
    ),
]
