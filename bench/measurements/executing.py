"""No-op calls: enqueued, then executed by one node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

from bench.measurement import Bar, Figures, Row
from bench.measurements.accepting import BATCH
from bench.measurements.on_request import calling
from bench.peers.trial import queue
from bench.session import DATABASES, Session, product
from bench.tools import stamps
from bench.tools.daemon import Daemon
from bench.tools.ledger import Ledger
from bench.tools.load import hammer, request
from bench.tools.waiting import until

ORDER = 6
TITLE = "No-op calls (peers: tasks), enqueued while nothing works, then executed"
PEERS = ("DBOS", "Celery", "procrastinate", "graphile-worker", "huey", "APScheduler on SQLite")
BARS = tuple(Bar(product(database), "executed/s", least=1200) for database in DATABASES)
_LIMIT = 120


def run(session: Session) -> Iterator[Row]:
    count = session.size(10_000, 100)
    yield from session.ours(lambda database: measure(session, count, database))
    yield from session.theirs(PEERS, lambda name: queue(session, name, session.size(20_000, 100)))


def measure(session: Session, count: int, database: str) -> Figures:
    """`executed/s` from the first start to the last, as for the peers; `with settling/s` until every run is settled."""
    with calling(session, database) as daemon:
        enqueued = enqueue(daemon, count)
        with closing(Ledger(daemon.state, daemon.url)) as ledger, session.profiled(daemon, database):
            daemon.must("POST", "/v1/jobs/asked/resume", {})
            begun = time.time()
            until(lambda: stamps.count(daemon.folder, "started") >= count, _LIMIT, f"{count} have started", 0.05)
            started = stamps.read(daemon.folder, "started")
            until(lambda: not ledger.runs("status IN ('PENDING', 'RUNNING')"), _LIMIT, "all are over", 0.1)
            over = time.time() - begun
            failed = ledger.runs("status <> 'COMPLETED'")
        if failed:
            raise RuntimeError(f"{failed} of {count} runs did not complete")
        return {
            "enqueued in batches/s": count / enqueued,
            "executed/s": (len(started) - 1) / max(1e-6, started[-1] - started[0]),
            "with settling/s": count / over,
        }


def enqueue(daemon: Daemon, count: int) -> float:
    """So many runs of its job `asked`, which is paused first; the seconds that they took to be accepted."""
    daemon.must("POST", "/v1/jobs/asked/pause", {"reason": "first they are enqueued"})
    size = min(BATCH, count)
    body = json.dumps({"runs": [{"payload": {"order": number}} for number in range(size)]}).encode()
    sent = hammer(daemon.socket, request("POST", "/v1/jobs/asked/runs", body), count // size, 4, _LIMIT)
    if sent.statuses[202] != count // size:
        raise RuntimeError(f"answers {dict(sent.statuses)}: {sent.refusal}")
    return sent.seconds
