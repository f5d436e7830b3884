"""From the start of a daemon with 10,000 jobs to the first occurrence that it has planned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from bench.measurement import Bar, Figures, Row
from bench.peers.trial import Trial, trial
from bench.session import DATABASES, Session, product
from bench.tools.daemon import Daemon
from bench.tools.jobs_file import EVERY_SECOND, far_jobs, job, jobs_file
from bench.tools.ledger import Ledger
from bench.tools.percentiles import percentile
from bench.tools.waiting import until

ORDER = 8
TITLE = "Start with 10,000 jobs: seconds from the start of the process to the first planned occurrence"
PEERS = ("APScheduler on SQLite", "Celery")
BARS = tuple(
    Bar(product(database), figure, most=4) for database in DATABASES for figure in ("first start s", "again s")
)
ROUNDS = 3
_LIMIT = 120


def run(session: Session) -> Iterator[Row]:
    count = session.size(10_000, 50)
    yield from session.ours(lambda database: measure(session, count, database))
    yield from session.theirs(PEERS, lambda name: measure_peer(session, count, name))


def measure(session: Session, count: int, database: str) -> Figures:
    """First on an empty database; then again after kill -9, with the same jobs (median of three)."""
    jobs = [job("probe", schedule=EVERY_SECOND, command=["/bin/true"]), *far_jobs(count)]
    with session.daemon(jobs_file(jobs), database, start=False) as daemon:
        first = until_planned(daemon)
        again = []
        for _ in range(session.size(ROUNDS, 1)):
            daemon.wait_ready()
            daemon.kill()
            again.append(until_planned(daemon))
        return {"first start s": first, "again s": percentile(again, 0.5)}


def until_planned(daemon: Daemon) -> float:
    """Seconds from now, when the daemon is started, until a new occurrence is in its database."""
    known = 0
    if (daemon.state / "scheduler.db").exists() or daemon.url:
        with suppress(Exception), closing(Ledger(daemon.state, daemon.url)) as ledger:
            known = ledger.last()
    begun = time.monotonic()
    daemon.start(wait=False)
    until(lambda: _last(daemon) > known, _LIMIT, f"the first occurrence is planned: {daemon.tail()}", 0.02)
    return time.monotonic() - begun


def _last(daemon: Daemon) -> int:
    # While the schema is being made there is nothing to read.
    with suppress(Exception), closing(Ledger(daemon.state, daemon.url)) as ledger:
        return ledger.last()
    return 0


def measure_peer(session: Session, count: int, name: str) -> Figures:
    """Again after the end of its process: to the first start of a job that is due every second."""
    with trial(session, name, count, time.time() + 43200) as one:
        first = until_working(one, "first-load")
        again = []
        for _ in range(session.size(ROUNDS, 1)):
            one.group.stop()
            again.append(until_working(one, "restart"))
        return {"first start s": first, "again s": percentile(again, 0.5)}


def until_working(one: Trial, role: str) -> float:
    kind = "recorded" if one.peer.name == "Celery" else "started"
    known, begun = one.count(kind), time.monotonic()
    one.start(role)
    until(_more(one, kind, known), _LIMIT, f"it works: {one.group.tail()}", 0.02)
    return time.monotonic() - begun


def _more(one: Trial, kind: str, known: int) -> Callable[[], bool]:
    return lambda: one.count(kind) > known
