"""Scans: where each stands, what the last ones came to, and what cannot be proven complete."""

from __future__ import annotations

from datetime import datetime

from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.errors import NotFound
from scheduler.core.job import Job
from scheduler.core.scan_json import aside_json, counts_json, hole_json, report_json
from scheduler.core.scan_queries import ScanView
from scheduler.web.answers import Answer
from scheduler.web.backend import backend_of
from scheduler.web.operation import Operation
from scheduler.web.parameters import Number, Text
from scheduler.web.present import Shown, seconds_between, when
from scheduler.web.shapes import COUNT, FLAG, INSTANT, NUMBER, TEXT, many, maybe, record

JOB = Text("job", "Only of this scan job.")
RUN = Text("run", "Only the reports of this run.")
LIMIT = Number("limit", "So many of the newest reports, and of the newest asides.", 20, 1, 1000)
BEGINS = 2_000
"""Characters that are shown of an item that nobody could read."""


def scans(request: Request) -> Answer:
    """Every scan job and where it stands, the newest reports, the holes: parts of a source's past that nobody can list
    any more, and the asides: items of lists that nobody could read (of a job the newest 100 are kept, of each text the
    first 2,000 characters are shown; `length` is all of it); a dry run keeps none, its report has the first ten.
    `lag_s`: how far its watermark, before which everything
    is settled, is behind."""
    backend = backend_of(request)
    job, run, limit = JOB.read(request), RUN.read(request), LIMIT.read(request)
    configuration = backend.configuration()
    jobs = {} if configuration is None else configuration.jobs
    wanted = {name: one for name, one in jobs.items() if one.compensate is not None and job in ("", name)}
    with backend.readable.queries() as queries:
        views = queries.scans(list(wanted))
        reports = queries.scan_reports(job or None, run or None, limit)
        asides = queries.scan_asides(job or None, limit, BEGINS)
        holes = [hole for hole in queries.scan_holes() if job in ("", hole.job)]
    if job and not wanted and not reports:
        known = ", ".join(sorted(name for name, one in jobs.items() if one.compensate is not None))
        raise NotFound(f"no scan job {job!r}", hint=f"there are {known or 'none'}: a job with `compensate` is one")
    now = backend.now()
    return Answer(
        {
            "scans": [scan_json(view, wanted[view.job], now) for view in views],
            "reports": [report_json(one) for one in reports],
            "holes": [hole_json(one) for one in holes],
            "asides": [aside_json(one) for one in asides],
            "now": when(now),
        }
    )


def scan_json(view: ScanView, job: Job, now: datetime) -> Shown:
    assert job.compensate is not None
    state = view.state
    window = None if state is None else state.window
    watermark = None if state is None else state.watermark
    return {
        "job": view.job,
        "source": job.compensate.source,
        "compensator": job.compensate.compensator,
        "watermark": when(watermark),
        "lag_s": seconds_between(watermark, now),
        "under_way": None
        if state is None or window is None
        else {
            "start": when(window.start),
            "end": when(window.end),
            "began_at": when(state.began_at),
            "run": state.run,
            **counts_json(state.counts),
        },
        "last": None if view.last is None else report_json(view.last),
    }


_COUNTS = {
    **dict.fromkeys(
        (
            "listed",
            "known",
            "injected",
            "too_young",
            "undecodable",
            "repeated",
            "late",
            "pages",
            "calls",
            "throttled",
        ),
        COUNT,
    ),
    "oldest_unseen_s": NUMBER,
    "miss_rate": NUMBER,
}
_HOLE = record(job=TEXT, source=TEXT, start=INSTANT, end=INSTANT, why=TEXT, found_at=INSTANT)
_ASIDE = record(job=TEXT, source=TEXT, found_at=INSTANT, occurred_at=INSTANT, why=TEXT, begins=TEXT, length=COUNT)
_REPORT = record(
    job=TEXT,
    source=TEXT,
    run=TEXT,
    window=record(start=INSTANT, end=INSTANT),
    **_COUNTS,
    began_at=INSTANT,
    ended_at=INSTANT,
    complete=FLAG,
    why=TEXT,
    holes=many(_HOLE),
    unlisted=COUNT,
    unlisted_ids=many(TEXT),
    lag_s=NUMBER,
    dry_run=FLAG,
    asides=many(_ASIDE),
)
_SCAN = record(
    job=TEXT,
    source=TEXT,
    compensator=TEXT,
    watermark=INSTANT,
    lag_s=NUMBER,
    under_way=maybe(record(start=INSTANT, end=INSTANT, began_at=INSTANT, run=TEXT, **_COUNTS)),
    last=maybe(_REPORT),
)

operations = [
    Operation(
        "GET",
        "/v1/scans",
        scans,
        Access.READ,
        record(scans=many(_SCAN), reports=many(_REPORT), holes=many(_HOLE), asides=many(_ASIDE), now=INSTANT),
        query=(JOB, RUN, LIMIT),
    ),
]
