"""`schedctl list` with 5,000 jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.measurement import Bar, Figures, Row
from bench.session import DATABASES, Session, product
from bench.tools.jobs_file import far_jobs, jobs_file
from bench.tools.percentiles import percentile

ORDER = 12
TITLE = "`schedctl list` with 5,000 jobs, milliseconds until it is done"
BARS = tuple(Bar(product(database), "list ms", most=500) for database in DATABASES)
_ROUNDS = 5


def run(session: Session) -> Iterator[Row]:
    yield from session.ours(lambda database: measure(session, database))


def measure(session: Session, database: str) -> Figures:
    """Medians, in a pipe."""
    count = session.size(5000, 50)
    jobs = far_jobs(count)
    with session.daemon(jobs_file(jobs), database) as daemon:
        figures = {}
        for name, words in (
            ("list ms", ["list"]),
            ("list -o json ms", ["-o", "json", "list"]),
            ("status ms", ["status"]),
        ):
            taken = []
            for _ in range(session.size(_ROUNDS, 1)):
                begun = time.monotonic()
                done = daemon.schedctl(*words)
                taken.append(time.monotonic() - begun)
                if done.returncode > 1 or (words[-1] == "list" and done.stdout.count(b"job-") < count):
                    raise RuntimeError(f"schedctl {' '.join(words)}: {done.returncode} {done.stderr[-300:]!r}")
            figures[name] = percentile(taken, 0.5) * 1e3
        return figures
