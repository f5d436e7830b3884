"""How fast a scan compares a provider's list with the inbox, what memory that takes, and what it asks the database."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measurement import Bar, Figures, Row
from bench.plugins.numbered import STEP
from bench.session import Session, product
from bench.tools.daemon import Daemon
from bench.tools.jobs_file import job, jobs_file
from bench.tools.load import pour
from bench.tools.processes import cost, peak, peak_from_now
from bench.tools.waiting import until
from bench.tools.webhooks import free_port, source, webhooks

ORDER = 11.5
TITLE = "A scan of 1,000,000 listed events, of which the inbox has every one"
BARS = (
    Bar(product(), "events/s", least=20_000),
    Bar(product(), "growth MB", most=50),
    Bar(product(), "inbox queries per page", most=1),
)
PAGE = 1000
_NUMBERED = Path(__file__).parent.parent / "plugins" / "numbered.py"
_LIMIT = 600.0
"""Seconds that a scan may take."""


def run(session: Session) -> Iterator[Row]:
    yield session.row(product(), lambda: measure(session, session.size(1_000_000, 5_000)))


def measure(session: Session, count: int) -> Figures:
    """Twice: the first scan also notes of each event that it was listed; the second has nothing to write of it."""
    with _inbox(session, session.folder(), count, {"scan": PAGE}) as daemon, session.profiled(daemon, "SQLite"):
        before = cost([daemon.pid])[daemon.pid].rss
        peak_from_now(daemon.pid)
        first, worker = _scan(daemon, "scan", count)
        again, _ = _scan(daemon, "scan", count)
        grown = peak(daemon.pid) - before
    return {
        "events/s": count / first,
        "again events/s": count / again,
        "growth MB": grown / 1e6,
        "worker RSS MB": worker / 1e6,
        "inbox queries per page": _queries(session, session.size(20_000, 5_000)),
    }


def _queries(session: Session, count: int) -> float:
    """By how many queries of events a scan in pages of half the size asks more often, per page that it has more."""
    sizes = {"whole": PAGE, "half": PAGE // 2}
    folder = session.folder()
    notes = folder / "statements"
    notes.touch()
    with _inbox(session, folder, count, sizes) as daemon:
        for name in sizes:
            _scan(daemon, name, count)
        lines = notes.read_text().splitlines()
    asked = {
        name: sum(line.startswith(f"scan {name}\tSELECT") and " FROM events " in line for line in lines)
        for name in sizes
    }
    if not asked["whole"]:
        raise RuntimeError("no query of events was noted")
    return (asked["half"] - asked["whole"]) / (count / sizes["half"] - count / sizes["whole"])


@contextmanager
def _inbox(session: Session, folder: Path, count: int, jobs: dict[str, int]) -> Iterator[Daemon]:
    """A daemon that has these events, and scan jobs whose pages have these sizes; `folder` is for its plug-in."""
    begin = datetime.fromtimestamp(int(time.time()) - 7200, UTC)
    port = free_port()
    scans = [
        job(
            name,
            compensate={
                "source": "sender",
                "compensator": "numbered",
                "with": {"begin": begin.isoformat(), "count": count, "page": size},
                "settle": "5m",
                "first_window": "3h",
                "margin": "3h",
            },
        )
        for name, size in jobs.items()
    ]
    text = jobs_file(scans, sources=source(folder, keep="30d"))
    settings = {"WEBHOOK_LISTEN": f"127.0.0.1:{port}", "PLUGINS": str(folder)}
    shutil.copy(_NUMBERED, folder)
    with session.daemon(text, start=False, **settings) as daemon:
        daemon.start()
        # The event that all others are copies of.
        answers = pour(port, webhooks("/webhooks/sender", 0, 1), 1, 10)
        if set(answers.statuses) - {200, 202}:
            raise RuntimeError(f"answers {dict(answers.statuses)}: {answers.refusal}")
        daemon.stop()
        fill(daemon.state / "scheduler.db", begin, count)
        daemon.start()
        yield daemon
    session.drop(folder)


def fill(database: Path, begin: datetime, count: int) -> None:
    """Copies the one event that there is, with its body: numbered from 1 on, STEP apart."""
    seconds = f"{begin.timestamp():.0f} + numbers.number * {STEP.total_seconds()}"
    at = f"strftime('%Y-%m-%dT%H:%M:%f000Z', {seconds}, 'unixepoch')"
    made = {"id": "printf('evt-%08d', numbers.number)", "occurred_at": at, "received_at": at, "webhook_at": at}
    with closing(sqlite3.connect(database)) as sqlite:
        columns = [one[0] for one in sqlite.execute("SELECT * FROM events").description if one[0] != "seq"]
        values = ", ".join(made.get(name, f"model.{name}") for name in columns)
        sqlite.execute(
            f"INSERT INTO events ({', '.join(columns)}) WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL "
            f"SELECT number + 1 FROM numbers WHERE number < {count}) SELECT {values} "
            f"FROM numbers, (SELECT * FROM events LIMIT 1) AS model"
        )
        sqlite.execute(
            "INSERT INTO event_bodies (event, headers, body) SELECT events.seq, model.headers, model.body "
            "FROM events, (SELECT * FROM event_bodies LIMIT 1) AS model WHERE events.seq <> model.event"
        )
        sqlite.commit()


def _scan(daemon: Daemon, name: str, count: int) -> tuple[float, int]:
    """Seconds from the beginning of its list to its end, and the most bytes that a process below the daemon held."""
    known = _reports(daemon, name)
    held = 0

    def over() -> bool:
        nonlocal held
        below = [pid for pid in daemon.pids() if pid != daemon.pid]
        held = max([held, *(one.rss for one in cost(below).values())])
        return len(_reports(daemon, name)) > len(known)

    daemon.must("POST", f"/v1/jobs/{name}/runs", {})
    until(over, _LIMIT, f"the scan is over: {daemon.tail()}", 0.2)
    report = _reports(daemon, name)[0]
    wanted = {"listed": count, "known": count, "injected": 0, "unlisted": 0, "complete": True}
    if wrong := {key: report[key] for key, value in wanted.items() if report[key] != value}:
        raise RuntimeError(f"the report says {wrong} of {count} events: {report['why']}")
    began, ended = (datetime.fromisoformat(report[key]) for key in ("began_at", "ended_at"))
    return (ended - began).total_seconds(), held


def _reports(daemon: Daemon, name: str) -> list[dict[str, Any]]:
    """The newest first."""
    found: list[dict[str, Any]] = daemon.must("GET", f"/v1/scans?job={name}")["reports"]
    return found
