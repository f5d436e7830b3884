"""One job, due every second, on an otherwise idle daemon: how late its child starts."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.measurement import Bar, Figures, Row
from bench.peers.trial import trial
from bench.session import Session, product
from bench.tools import stamps
from bench.tools.jobs_file import EVERY_SECOND, job, jobs_file
from bench.tools.percentiles import spread
from bench.tools.seconds import lateness
from bench.tools.waiting import until

ORDER = 3
TITLE = "One job due alone, 100 occurrences: milliseconds from the due instant to the start of its child"
PEERS = ("cronstable", "APScheduler in memory")
BARS = tuple(Bar(product(database), "p99 ms", most=30) for database in ("SQLite", "PostgreSQL"))
_SETTLING = 2
"""Occurrences at the beginning that do not count."""


def run(session: Session) -> Iterator[Row]:
    count = session.size(100, 3)
    yield from session.ours(lambda database: measure(session, count, database))
    yield from session.theirs(PEERS, lambda name: measure_peer(session, count, name))


def measure(session: Session, count: int, database: str) -> Figures:
    folder = session.folder()
    command = [str(session.child), str(folder / "started.cmd")]
    with session.daemon(jobs_file([job("lone", schedule=EVERY_SECOND, command=command)]), database):
        until(lambda: stamps.count(folder, "started") >= count + _SETTLING + 1, count + 60, f"{count} occurrences", 0.2)
        figures = figures_of(stamps.read(folder, "started"), count)
    session.drop(folder)
    return figures


def measure_peer(session: Session, count: int, name: str) -> Figures:
    with trial(session, name, 1, time.time(), command=True) as one:
        one.start("second")
        until(lambda: one.count("started") >= count + _SETTLING + 1, count + 60, f"{count} occurrences", 0.2)
        return figures_of(one.read("started"), count)


def figures_of(started: list[float], count: int) -> Figures:
    """Of the occurrences after the first ones."""
    first = int(started[0]) + _SETTLING
    late = lateness(started, first, first + count - 1)
    return {"occurrences": len(late), **spread(late, "ms", 1e3), "over 1 s": sum(one >= 1 for one in late)}
