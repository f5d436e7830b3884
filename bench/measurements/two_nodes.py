"""Two nodes on one PostgreSQL: how fast they work off together what was enqueued before."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg

from bench.measurement import Bar, Figures, Row
from bench.measurements.executing import enqueue
from bench.measurements.on_request import NOOP
from bench.peers.peer import NotMeasured, base_environment, peers
from bench.peers.trial import LIMIT, trial
from bench.session import Session
from bench.tools import stamps
from bench.tools.daemon import Daemon
from bench.tools.jobs_file import job, jobs_file
from bench.tools.ledger import Ledger
from bench.tools.processes import Group
from bench.tools.waiting import until

ORDER = 6.5
TITLE = "Two nodes (peers: workers) on one PostgreSQL, from the first start until all is settled: median of three runs"
OURS = "schedulerd, two nodes"
PEERS = ("procrastinate", "DBOS", "graphile-worker", "pg-boss")
BARS = tuple(
    Bar(OURS, figure, least=1, beside=peer)
    for figure in ("calls/s", "requests/s")
    for peer in ("procrastinate", "DBOS")
)
_RUNS = 3
_STEP = 0.05
_PLACES = "{default: {concurrency: 128}}"
"""A place for each slot of two nodes: one has 64, and so has a queue that nobody made wider."""


def run(session: Session) -> Iterator[Row]:
    calls, requests = session.size(6_000, 40), session.size(3_000, 40)
    yield session.row(OURS, lambda: _both(session, calls, requests, ours_calls, ours_requests))
    for name in PEERS if session.peers else ():
        yield session.row(name, lambda name=name: peer(session, name, calls, requests))  # type: ignore[misc]


Rate = Callable[[Session, int], float]


def _both(session: Session, calls: int, requests: int, of_calls: Rate, of_requests: Rate) -> Figures:
    runs = session.size(_RUNS, 1)
    return {
        "calls/s": statistics.median(of_calls(session, calls) for _ in range(runs)),
        "requests/s": statistics.median(of_requests(session, requests) for _ in range(runs)),
    }


def ours_calls(session: Session, count: int) -> float:
    work = session.folder()
    (work / "noop.py").write_text(NOOP.format(file=work / "started.call"))
    return _ours(session, count, job("asked", call="noop:stamped", workdir=str(work)), work)


def ours_requests(session: Session, count: int) -> float:
    with sink(session) as (url, folder):
        return _ours(session, count, job("asked", http={"method": "POST", "url": url}), folder)


def _ours(session: Session, count: int, asked: str, stamped: Path) -> float:
    with _nodes(session, asked) as (first, url), closing(Ledger(first.state, url)) as ledger:
        enqueue(first, count)
        first.must("POST", "/v1/jobs/asked/resume", {})
        seconds = _until_settled(stamped, lambda: ledger.runs("status IN ('PENDING', 'RUNNING')"))
        if failed := ledger.runs("status <> 'COMPLETED'"):
            raise RuntimeError(f"{failed} of {count} runs did not complete")
        nodes = ledger.value("SELECT count(DISTINCT node) FROM runs WHERE job = 'asked'")
        if nodes != 2 and count > 1000:
            raise RuntimeError(f"{nodes} of two nodes worked")
    return count / seconds


@contextmanager
def _nodes(session: Session, asked: str) -> Iterator[tuple[Daemon, str]]:
    """The first of two daemons, and the URL of their database."""
    with ExitStack() as stack:
        url = stack.enter_context(session.service("postgresql"))
        started = []
        for _ in range(2):
            folder = session.folder()
            stack.callback(session.drop, folder)
            daemon = Daemon(folder, jobs_file([asked], _PLACES), url)
            stack.callback(daemon.stop)
            daemon.start()
            started.append(daemon)
        yield started[0], url


def peer(session: Session, name: str, calls: int, requests: int) -> Figures:
    most = peers()[name].most
    return _both(
        session,
        min(calls, most),
        min(requests, most),
        lambda session, count: _theirs(session, name, count),
        lambda session, count: _theirs_requests(session, name, count),
    )


def _theirs_requests(session: Session, name: str, count: int) -> float:
    with sink(session) as (url, folder):
        return _theirs(session, name, count, url, folder)


def _theirs(session: Session, name: str, count: int, sink: str = "", stamped: Path | None = None) -> float:
    with trial(session, name, count, sink=sink) as one:
        one.finish("enqueue-batch" if "enqueue-batch" in one.peer.roles else "enqueue", LIMIT)
        with psycopg.connect(one.task.environment["BENCH_PG"], autocommit=True) as connection:

            def left() -> int:
                found = connection.execute(one.peer.left.encode()).fetchone()
                return int(found[0]) if found else 0

            if (there := left()) != count:
                raise NotMeasured(f"{there} of {count} were enqueued: {one.group.tail()}")
            for _ in range(2):
                one.start("work")
            seconds = _until_settled(stamped or one.folder, left)
        return count / seconds


def _until_settled(stamped: Path, left: Callable[[], int]) -> float:
    """Seconds from the first start that is stamped in that folder until nothing is left."""
    until(lambda: stamps.count(stamped, "started") > 0, LIMIT, "the first has started", _STEP)
    until(lambda: not left(), LIMIT, "all are settled", _STEP)
    return time.time() - stamps.read(stamped, "started")[0]


@contextmanager
def sink(session: Session) -> Iterator[tuple[str, Path]]:
    """The URL of a server that takes everything, and the folder of its stamps."""
    folder = session.folder()
    group = Group(folder)
    group.start([sys.executable, "-m", "bench.tools.sink", str(folder)], base_environment(), Path.cwd())
    try:
        until(lambda: (folder / "port").exists() or not group.alive(), 10, f"it listens: {group.tail()}")
        yield f"http://127.0.0.1:{(folder / 'port').read_text()}/", folder
    finally:
        group.stop()
        session.drop(folder)
