"""Pages of a history of 1,000,000 runs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg

from bench.measurement import Bar, Figures, Row
from bench.session import DATABASES, Session, product
from bench.tools.daemon import Daemon, send
from bench.tools.jobs_file import far, job, jobs_file
from bench.tools.ledger import Ledger
from bench.tools.percentiles import percentile
from bench.tools.waiting import until

ORDER = 11
TITLE = "`GET /v1/runs`, pages of 50 of 1,000,000 runs, milliseconds"
BARS = tuple(
    Bar(product(database), f"{what} p99 ms", most=100)
    for database in DATABASES
    for what in ("newest", "deep", "of one job", "failed")
)
JOBS = 1000


def run(session: Session) -> Iterator[Row]:
    yield from session.ours(lambda database: measure(session, database, session.size(1_000_000, 2_000)))


def measure(session: Session, database: str, count: int) -> Figures:
    times = session.size(100, 5)
    jobs = (job(f"job-{number:04}", schedule=far(number), command=["/bin/true"]) for number in range(JOBS))
    with session.daemon(jobs_file(jobs), database) as daemon:
        daemon.must("POST", "/v1/jobs/job-0000/runs", {})
        with closing(Ledger(daemon.state, daemon.url)) as ledger:
            until(lambda: ledger.runs("status = 'COMPLETED'") == 1, 30, "the model of all runs is over")
        daemon.stop()
        fill(daemon, count)
        daemon.start()
        figures: dict[str, float] = {}
        with closing(daemon.connect()) as connection, session.profiled(daemon, database):
            cursor = _deep_cursor(daemon)
            for what, query in (
                ("newest", "limit=50"),
                ("deep", f"limit=50&cursor={cursor}"),
                ("of one job", "limit=50&job=job-0500"),
                ("failed", "limit=50&status=FAILED"),
            ):
                taken = []
                for _ in range(times):
                    begun = time.perf_counter()
                    status, answer = send(connection, "GET", f"/v1/runs?{query}")
                    taken.append(time.perf_counter() - begun)
                    if status != 200 or len(answer["entries"]) == 0:
                        raise RuntimeError(f"{query}: {status} {str(answer)[:200]}")
                figures[f"{what} p50 ms"] = percentile(taken, 0.5) * 1e3
                figures[f"{what} p99 ms"] = percentile(taken, 0.99) * 1e3
        return figures


def _deep_cursor(daemon: Daemon) -> str:
    """A page some thousands of runs back."""
    cursor = ""
    for _ in range(3):
        answer = daemon.must("GET", f"/v1/runs?limit=1000&cursor={cursor}")
        cursor = answer["cursor"] or cursor
    return str(cursor)


def fill(daemon: Daemon, count: int) -> None:
    """Copies the one run that there is, with its attempt: over JOBS jobs, a minute apart, one in a hundred failed."""
    if daemon.url:
        with psycopg.connect(daemon.url) as postgres:
            names = [one.name for one in postgres.execute("SELECT * FROM runs").description or ()]
            for statement in statements(names, attempt_names(postgres), count, _POSTGRESQL):
                postgres.execute(statement.encode())
        with psycopg.connect(daemon.url, autocommit=True) as postgres:
            postgres.execute("ANALYZE")
        return
    with closing(sqlite3.connect(daemon.state / "scheduler.db")) as sqlite:
        names = [one[0] for one in sqlite.execute("SELECT * FROM runs").description]
        attempts = [one[0] for one in sqlite.execute("SELECT * FROM attempts").description]
        for statement in statements(names, attempts, count, _SQLITE):
            sqlite.execute(statement)
        sqlite.commit()


def attempt_names(postgres: psycopg.Connection[Any]) -> list[str]:
    return [one.name for one in postgres.execute("SELECT * FROM attempts").description or ()]


_NUMBER = "numbers.number"
_SQLITE = {
    "numbers": "WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers "
    "WHERE number < {count}) ",
    "from": "numbers",
    "id": "substr('00000000-0000-7000-8000-000000000000', 1, 28) || printf('%08d', numbers.number)",
    "job": f"'job-' || printf('%04d', numbers.number % {JOBS})",
    "at": "strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-' || (({count} - numbers.number) / 60) || ' minutes')",
}
_POSTGRESQL = {
    "numbers": "",
    "from": "generate_series(1, {count}) AS numbers(number)",
    "id": "'00000000-0000-7000-8000-0000' || lpad(numbers.number::text, 8, '0')",
    "job": f"'job-' || lpad((numbers.number % {JOBS})::text, 4, '0')",
    "at": "now() - (({count} - numbers.number) / 60) * interval '1 minute'",
}


def statements(runs: list[str], attempts: list[str], count: int, words: dict[str, str]) -> list[str]:
    """One INSERT for the runs, one for their attempts, in the words of that database."""
    numbers, source, at = (words[key].format(count=count) for key in ("numbers", "from", "at"))
    made = {
        "id": words["id"],
        "job": words["job"],
        "key": words["id"],
        "lock": words["job"],
        "status": "CASE WHEN numbers.number % 100 = 7 THEN 'FAILED' ELSE 'COMPLETED' END",
        "created_at": at,
        "started_at": at,
        "finished_at": at,
    }
    columns = [name for name in runs if name != "seq"]
    values = ", ".join(made.get(name, f"model.{_quoted(name)}") for name in columns)
    first = (
        f"INSERT INTO runs ({', '.join(map(_quoted, columns))}) {numbers}SELECT {values} "
        f"FROM {source}, (SELECT * FROM runs ORDER BY seq LIMIT 1) AS model"
    )
    values = ", ".join({"run": "runs.id"}.get(name, f"model.{_quoted(name)}") for name in attempts)
    second = (
        f"INSERT INTO attempts ({', '.join(map(_quoted, attempts))}) SELECT {values} "
        f"FROM runs, (SELECT * FROM attempts LIMIT 1) AS model WHERE runs.id <> model.run"
    )
    return [first, second]


def _quoted(name: str) -> str:
    return f'"{name}"'
