"""1,000 commands due in the same second, each a real process that writes down when it started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.measurement import Bar, Figures, Row
from bench.peers.trial import due_together
from bench.session import Session, product
from bench.tools import stamps
from bench.tools.due import must_be_before, with_due
from bench.tools.jobs_file import at, job, jobs_file
from bench.tools.percentiles import spread
from bench.tools.waiting import sleep_until, until

ORDER = 1
TITLE = "1,000 commands due in the same second: seconds from the due instant to the start of each child"
PEERS = ("cronstable", "Debian cron", "APScheduler in memory", "graphile-worker", "Celery", "procrastinate", "huey")
BARS = (
    Bar(product(), "start last s", most=1.5),
    Bar(product(), "start last s", most=0.5, beside="cronstable"),
    Bar(product(), "start last s", most=0.35, beside="Debian cron"),
)


def run(session: Session) -> Iterator[Row]:
    count = session.size(1000, 20)
    yield from session.ours(lambda database: measure(session, count, database))
    yield session.row(f"{product()}, 1,000 slots", lambda: measure(session, count, "SQLite", slots=1000))
    yield from session.theirs(PEERS, lambda name: due_together(session, name, count, command=True))


def measure(session: Session, count: int, database: str, slots: int = 64, child: Path | None = None) -> Figures:
    """`slots`: how many may run at once, in the queue and on the node; 64 is the default."""
    program = child or session.child
    return with_due(4 + count * 0.004, lambda due: _measure(session, count, database, slots, program, due))


def _measure(session: Session, count: int, database: str, slots: int, child: Path, due: float) -> Figures:
    folder = session.folder()
    jobs = (
        job(f"job-{number:05}", schedule=at(due), command=[str(child), str(folder / "started.cmd")])
        for number in range(count)
    )
    text = jobs_file(jobs, queues=f"{{default: {{concurrency: {slots}}}}}")
    with session.daemon(text, database, SLOTS=str(slots)):
        must_be_before(due - 0.5)
        sleep_until(due)
        until(lambda: stamps.count(folder, "started") >= count, 60, f"{count} children have started", 0.1)
        started = [instant - due for instant in stamps.read(folder, "started")]
    session.drop(folder)
    return {"started": len(started)} | {f"start {name}": value for name, value in spread(started, "s").items()}
