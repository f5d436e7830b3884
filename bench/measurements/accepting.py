"""How many runs per second are accepted over HTTP, durable before the answer, one by one and in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

from bench.measurement import Bar, Figures, Row
from bench.session import DATABASES, Session, product
from bench.tools.jobs_file import job, jobs_file
from bench.tools.ledger import Ledger
from bench.tools.load import Load, hammer, request
from bench.tools.percentiles import percentile

ORDER = 5
TITLE = "Runs accepted over HTTP, 64 connections, durable before the answer (peers: enqueued by one process)"
BARS = tuple(
    Bar(product(database), figure, least=least)
    for database in DATABASES
    for figure, least in (("one by one/s", 3000), ("in batches/s", 10_000))
)
CONNECTIONS = 64
BATCH = 1000
"""Runs per request of the batch form."""
_LIMIT = 20.0
"""Seconds of load at most."""


def run(session: Session) -> Iterator[Row]:
    yield from session.ours(lambda database: measure(session, database))
    # What the peers enqueue per second stands in the table of `executing`: it is one run of theirs.


def measure(session: Session, database: str) -> Figures:
    """The job is paused, so that only accepting is measured."""
    with session.daemon(jobs_file([job("asked", command=["/bin/true"])]), database) as daemon:
        daemon.must("POST", "/v1/jobs/asked/pause", {"reason": "only accepting is measured"})
        one = request("POST", "/v1/jobs/asked/runs", b'{"payload": {"order": 1}}')
        hammer(daemon.socket, one, CONNECTIONS * 2, CONNECTIONS, _LIMIT)
        singly = hammer(daemon.socket, one, session.size(20_000, 200), CONNECTIONS, _LIMIT)
        body = json.dumps({"runs": [{"payload": {"order": number}} for number in range(BATCH)]}).encode()
        many = request("POST", "/v1/jobs/asked/runs", body)
        batches = hammer(daemon.socket, many, session.size(100, 2), 4, _LIMIT)
        with closing(Ledger(daemon.state, daemon.url)) as ledger:
            there = ledger.runs()
        _check(singly)
        _check(batches)
        accepted = CONNECTIONS * 2 + singly.statuses[202] + batches.statuses[202] * BATCH
        if there != accepted:
            raise RuntimeError(f"{accepted} were accepted, {there} are in the database")
        return {
            "one by one/s": singly.statuses[202] / singly.seconds,
            "answer p50 ms": percentile(singly.waits, 0.5) * 1e3,
            "answer p99 ms": percentile(singly.waits, 0.99) * 1e3,
            "in batches/s": batches.statuses[202] * BATCH / batches.seconds,
        }


def _check(load: Load) -> None:
    if set(load.statuses) != {202}:
        raise RuntimeError(f"answers {dict(load.statuses)}: {load.refusal}")
