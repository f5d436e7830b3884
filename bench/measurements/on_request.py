"""A run asked for over HTTP on an idle daemon: from the request to the start of its child."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from bench.measurement import Bar, Figures, Row
from bench.peers.trial import latency
from bench.session import DATABASES, Session, product
from bench.tools import stamps
from bench.tools.daemon import Daemon, send
from bench.tools.jobs_file import job, jobs_file
from bench.tools.percentiles import spread
from bench.tools.waiting import until

ORDER = 4
TITLE = "A run asked for on an idle system: milliseconds from the request to the start of what it runs"
PEERS = ("Celery", "graphile-worker", "procrastinate", "huey", "APScheduler on SQLite", "DBOS")
BARS = tuple(
    Bar(product(database), figure, most=most)
    for database in DATABASES
    for figure, most in (("p50 ms", 8), ("p99 ms", 25))
)


def run(session: Session) -> Iterator[Row]:
    count = session.size(200, 5)
    yield from session.ours(lambda database: measure(session, count, database))
    for database in DATABASES:
        yield session.row(
            f"{product(database)}, call",
            lambda database=database: measure_call(session, count, database),  # type: ignore[misc]
        )
    few = min(count, 60)
    yield from session.theirs(PEERS, lambda name: latency(session, name, few if name == "DBOS" else count))


def measure(session: Session, count: int, database: str) -> Figures:
    """A fresh process per run."""
    folder = session.folder()
    command = [str(session.child), str(folder / "started.cmd")]
    with session.daemon(jobs_file([job("asked", command=command)]), database) as daemon:
        figures = probe(daemon, count, lambda: stamps.read(folder, "started"))
    session.drop(folder)
    return figures


def measure_call(session: Session, count: int, database: str) -> Figures:
    """A warm worker, as the peers have."""
    with calling(session, database) as daemon:
        return probe(daemon, count, lambda: stamps.read(daemon.folder, "started"))


@contextmanager
def calling(session: Session, database: str) -> Iterator[Daemon]:
    """A daemon whose job `asked` calls a function that does nothing but stamp its start."""
    text = jobs_file([job("asked", call="noop:stamped", workdir="work")])
    with session.daemon(text, database, start=False) as daemon:
        work = daemon.folder / "work"
        work.mkdir()
        (work / "noop.py").write_text(NOOP.format(file=daemon.folder / "started.call"))
        daemon.start()
        yield daemon


NOOP = """import os, time
_file = os.open('{file}', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)


def stamped(payload):
    os.write(_file, b"%.6f\\n" % time.time())
"""


def probe(daemon: Daemon, count: int, started: object) -> Figures:
    """Asks `count` times, each a moment after the one before has started; the first ones do not count."""
    assert callable(started)
    warm_up, waits = 5, []
    with closing(daemon.connect()) as connection:
        for number in range(count + warm_up):
            time.sleep(0.03 + random.random() * 0.05)
            asked = time.time()
            status, answer = send(connection, "POST", "/v1/jobs/asked/runs", {"payload": {"number": number}})
            if status >= 300:
                raise RuntimeError(f"refused: {answer}")
            until(lambda number=number: len(started()) > number, 15, "the run has started", 0.002)  # type: ignore[misc]
            waits.append(started()[number] - asked)
    return spread(waits[warm_up:], "ms", 1e3)
