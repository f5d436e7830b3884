"""10,000 jobs due in the same second: from the due instant until each run can be read from the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

from bench.measurement import Bar, Figures, Row
from bench.peers.trial import due_together
from bench.session import Session, product
from bench.tools.due import must_be_before, with_due
from bench.tools.jobs_file import at, job, jobs_file
from bench.tools.ledger import Arrivals, Ledger
from bench.tools.percentiles import spread
from bench.tools.waiting import sleep_until, until

ORDER = 2
TITLE = "10,000 jobs due in the same second: seconds from the due instant until each run is durable"
PEERS = ("APScheduler on SQLite", "APScheduler on PostgreSQL", "graphile-worker")
BARS = (
    Bar(product(), "durable p99 s", most=1.0),
    Bar(product(), "durable p99 s", most=0.1, beside="APScheduler on SQLite"),
    Bar(product("PostgreSQL"), "durable p99 s", most=1.5),
    Bar(product("PostgreSQL"), "durable p99 s", most=0.1, beside="APScheduler on PostgreSQL"),
)


def run(session: Session) -> Iterator[Row]:
    count = session.size(10_000, 50)
    yield from session.ours(lambda database: measure(session, count, database))
    yield from session.theirs(PEERS, lambda name: due_together(session, name, count, command=False))


def measure(session: Session, count: int, database: str) -> Figures:
    """The jobs run /bin/true, 64 at a time, while the rest is still being written: nothing is held back for us."""
    return with_due(5 + count * 0.003, lambda due: _measure(session, count, database, due))


def _measure(session: Session, count: int, database: str, due: float) -> Figures:
    text = jobs_file(job(f"job-{number:05}", schedule=at(due), command=["/bin/true"]) for number in range(count))
    with session.daemon(text, database) as daemon:
        must_be_before(due - 1)
        with closing(Ledger(daemon.state, daemon.url)) as ledger:
            sleep_until(due - 0.5)
            arrivals = Arrivals(ledger)
            try:
                until(lambda: arrivals.known() >= count, 60, f"{count} runs are durable", 0.02)
            finally:
                durable = [instant - due for instant in arrivals.stop()]
            assert ledger.runs() == count, f"{ledger.runs()} runs of {count}"
            figures = {f"durable {name}": value for name, value in spread(durable, "s").items()}
            until(lambda: ledger.runs("status = 'COMPLETED'") == count, 180, f"{count} runs are over", 0.25)
            return figures | {"all over s": time.time() - due}
