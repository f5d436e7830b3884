"""What 10,000 jobs cost that have nothing to do for an hour."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from bench.measurement import Bar, Figures, Row
from bench.peers.trial import trial
from bench.session import DATABASES, Session, product
from bench.tools.jobs_file import far_jobs, jobs_file
from bench.tools.processes import Cost, Others, cost

ORDER = 7
TITLE = "Idle with 10,000 jobs, the next one due in an hour: all processes, without the database server"
PEERS = ("Celery", "APScheduler in memory", "APScheduler on SQLite", "cronstable", "Debian cron", "graphile-worker")
BARS = tuple(
    Bar(product(database), figure, most=most)
    for database in DATABASES
    for figure, most in (("RSS MB", 150), ("CPU s/min", 0.6))
)


def run(session: Session) -> Iterator[Row]:
    """Side by side: memory and CPU time do not depend on the neighbours."""
    count, window = session.size(10_000, 50), session.size(60, 2)
    with ExitStack() as stack:
        started = list(_start_all(session, stack, count))
        living = [one for one in started if not isinstance(one, Row)]
        # What happens after a start belongs to the start.
        time.sleep(session.size(20, 1))
        before, others, begun = [cost(pids()) for _, pids in living], Others(), time.monotonic()
        time.sleep(window)
        after, seconds = [cost(pids()) for _, pids in living], time.monotonic() - begun
        used = others.cpus()
        for (subject, _), then, now in zip(living, before, after, strict=True):
            figures = idle_figures(then, now, seconds)
            yield session.shown(Row(subject, figures, failed="" if figures else "it ended", others=used))
    yield from (session.shown(one) for one in started if isinstance(one, Row))


def _start_all(session: Session, stack: ExitStack, count: int) -> Iterator[Row | tuple[str, Callable[[], list[int]]]]:
    text = jobs_file(far_jobs(count))
    for database in DATABASES:
        try:
            daemon = stack.enter_context(session.daemon(text, database))
            yield product(database), daemon.pids
        except Exception as error:
            yield Row(product(database), failed=str(error))
    for name in PEERS if session.peers else ():
        try:
            one = stack.enter_context(trial(session, name, count, time.time() + 43200))
            one.start("idle")
            one.wait_loaded(one.peer.lead(count) * 2)
            yield name, one.pids
        except Exception as error:
            yield Row(name, failed=str(error))


def idle_figures(before: dict[int, Cost], after: dict[int, Cost], seconds: float) -> Figures:
    """`PSS MB` counts once what processes share. None where nothing lives any more."""
    if not after:
        return {}
    used = sum(now.cpu - (before[pid].cpu if pid in before else 0.0) for pid, now in after.items())
    return {
        "processes": len(after),
        "RSS MB": sum(one.rss for one in after.values()) / 1e6,
        "PSS MB": sum(one.pss for one in after.values()) / 1e6,
        "CPU s/min": max(0.0, used) * 60 / seconds,
    }
