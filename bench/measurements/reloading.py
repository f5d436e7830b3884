"""Reloading 10,000 jobs, ten of them changed, while another job runs every second."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.measurement import Bar, Figures, Row
from bench.session import DATABASES, Session, product
from bench.tools import stamps
from bench.tools.jobs_file import EVERY_SECOND, far, job, jobs_file
from bench.tools.percentiles import percentile

ORDER = 10
TITLE = "Reload of 10,000 jobs with 10 changed: how late a job is that runs every second meanwhile"
BARS = tuple(Bar(product(database), "last ms", most=1000) for database in DATABASES)
CHANGED = 10


def run(session: Session) -> Iterator[Row]:
    yield from session.ours(lambda database: measure(session, database))


def measure(session: Session, database: str) -> Figures:
    """`missed`: seconds in which the job did not start at all, each of them more than a second late."""
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
        started = [instant for instant in stamps.read(folder, "started") if instant >= begun]
    session.drop(folder)
    seconds = {int(instant) for instant in started}
    late = [instant % 1 for instant in started]
    return {
        "reload p50 s": percentile(taken, 0.5),
        "p50 ms": percentile(late, 0.5) * 1e3,
        # An occurrence that was not there in its second was at least that late.
        "last ms": max(late) * 1e3 + 1000 * (int(max(started)) - int(min(started)) + 1 - len(seconds)),
        "missed": int(max(started)) - int(min(started)) + 1 - len(seconds),
    }


def text(count: int, edit: int, steady: str) -> str:
    jobs = [steady]
    for number in range(count):
        more = {"description": f"edit {edit}"} if number % (count // CHANGED) == 0 else {}
        jobs.append(job(f"job-{number:05}", schedule=far(number), command=["/bin/true"], **more))
    return jobs_file(jobs)
