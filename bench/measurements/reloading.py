"""Reloading 10,000 jobs, ten of them changed, while another job runs every second."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.measurement import Bar, Figures, Row
from bench.session import DATABASES, Session, product
from bench.tools import stamps
from bench.tools.jobs_file import EVERY_SECOND, far, job, jobs_file
from bench.tools.percentiles import percentile, spread
from bench.tools.seconds import lateness
from bench.tools.waiting import until

ORDER = 10
TITLE = "Reload of 10,000 jobs with 10 changed: how late a job is that runs every second meanwhile"
BARS = tuple(Bar(product(database), "last ms", most=1000) for database in DATABASES)
CHANGED = 10


def run(session: Session) -> Iterator[Row]:
    yield from session.ours(lambda database: measure(session, database))


def measure(session: Session, database: str) -> Figures:
    """The lateness of every second from the first reload to a moment after the last."""
    count, rounds = session.size(10_000, 50), session.size(5, 1)
    folder = session.folder()
    steady = job("steady", schedule=EVERY_SECOND, command=[str(session.child), str(folder / "started.cmd")])
    with session.daemon(text(count, 0, steady), database) as daemon:
        time.sleep(2)
        begun, taken = time.time(), []
        for edit in range(1, rounds + 1):
            daemon.config.write_text(text(count, edit, steady))
            asked = time.monotonic()
            daemon.must("POST", "/v1/reload", {})
            taken.append(time.monotonic() - asked)
            time.sleep(2)
        over = int(time.time()) - 1
        until(lambda: stamps.read(folder, "started")[-1] > over, 60, "the job goes on")
        late = lateness(stamps.read(folder, "started"), int(begun) + 1, over)
    session.drop(folder)
    return {
        "reload p50 s": percentile(taken, 0.5),
        **spread(late, "ms", 1e3),
        "over 1 s": sum(one >= 1 for one in late),
    }


def text(count: int, edit: int, steady: str) -> str:
    jobs = [steady]
    for number in range(count):
        more = {"description": f"edit {edit}"} if number % (count // CHANGED) == 0 else {}
        jobs.append(job(f"job-{number:05}", schedule=far(number), command=["/bin/true"], **more))
    return jobs_file(jobs)
