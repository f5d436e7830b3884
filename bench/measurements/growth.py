"""How cost grows with the number of jobs, and a page with the number of runs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.measurement import Bar, Figures, Row
from bench.measurements import checking, due_durable, history, starting
from bench.measurements.idle import idle_figures
from bench.session import Session
from bench.tools.jobs_file import far_jobs, jobs_file
from bench.tools.processes import cost

ORDER = 15
TITLE = "How cost grows: schedulerd on SQLite with more and more jobs and runs"
BARS: tuple[Bar, ...] = ()


def run(session: Session) -> Iterator[Row]:
    for count in (100, 1000, 10_000) if session.full else (20, 40):
        yield session.row(f"{count:,} jobs", lambda count=count: of_jobs(session, count))  # type: ignore[misc]
    for count in (10_000, 100_000, 1_000_000) if session.full else (1500, 2500):
        yield session.row(f"{count:,} runs", lambda count=count: of_runs(session, count))  # type: ignore[misc]


def of_jobs(session: Session, count: int) -> Figures:
    figures = {f"check {name}": value for name, value in checking.measure(session, count).items()}
    figures |= starting.measure(session, count, "SQLite")
    jobs = far_jobs(count)
    with session.daemon(jobs_file(jobs)) as daemon:
        time.sleep(session.size(10, 1))
        before, begun = cost(daemon.pids()), time.monotonic()
        time.sleep(session.size(30, 1))
        idle = idle_figures(before, cost(daemon.pids()), time.monotonic() - begun)
    figures |= {name: idle[name] for name in ("RSS MB", "CPU s/min")}
    return figures | dict(due_durable.measure(session, count, "SQLite"))


def of_runs(session: Session, count: int) -> Figures:
    pages = history.measure(session, "SQLite", count)
    return {name: value for name, value in pages.items() if name.endswith("p50 ms")}
