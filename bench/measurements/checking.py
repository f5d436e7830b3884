"""`schedctl check` of 10,000 jobs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

from bench.measurement import Bar, Figures, Row
from bench.session import Session
from bench.tools.daemon import SCHEDCTL
from bench.tools.jobs_file import far_jobs, jobs_file
from bench.tools.percentiles import percentile

ORDER = 9
TITLE = "`schedctl check` of a file with 10,000 jobs, seconds"
BARS = (Bar("schedulerd", "s", most=3),)


def run(session: Session) -> Iterator[Row]:
    yield session.row("schedulerd", lambda: measure(session, session.size(10_000, 50)))


def measure(session: Session, count: int) -> Figures:
    """The median of three."""
    folder = session.folder()
    jobs = far_jobs(count)
    file = folder / "jobs.yaml"
    file.write_text(jobs_file(jobs))
    taken = []
    for _ in range(session.size(3, 1)):
        begun = time.monotonic()
        subprocess.run([str(SCHEDCTL), "check", str(file)], check=True, capture_output=True)
        taken.append(time.monotonic() - begun)
    session.drop(folder)
    return {"s": percentile(taken, 0.5)}
