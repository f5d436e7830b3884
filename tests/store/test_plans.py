"""The hot queries find their rows by index, on tables that were never analyzed, whatever lies in them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import bindparam, text

from scheduler.core.job import Queue
from scheduler.core.model import Status
from scheduler.core.ports import Transaction
from scheduler.core.queries import Queries, RunFilter
from scheduler.core.requests import Claim
from scheduler.store.store import SqlStore
from scheduler.store.types import UtcInstant
from tests.databases import Place
from tests.store.plans import plan_of, statements_on
from tests.store.world import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    T0,
    add,
    claim,
    new_run,
    occurrence,
    promote,
    set_up,
    settle,
    settlement,
    state,
)

JOBS = [f"job-{number}" for number in range(20)]


_FILL = """
INSERT INTO runs (id, job, key, cause, status, created_at, queue, priority, attempt, failures, lost, lock,
    scheduled_for, waits_for, not_before, has_payload, note, author, fence, started_at, finished_at)
SELECT 'id' || n, CASE WHEN n <= {history} THEN 'job-' ELSE 'unknown-' END || (n % 20), 'k' || n,
    'api', CASE WHEN n <= {history} THEN 'COMPLETED' ELSE 'PENDING' END,
    :old, 'default', 0, 0, 0, 0, CASE WHEN n > {history} THEN 'lock:busy' END,
    CASE WHEN n <= {history} THEN :old END,
    CASE WHEN n <= {history} THEN NULL WHEN n % 10 = 0 THEN 'time' WHEN n % 10 = 1 THEN 'pause' ELSE 'lock' END,
    CASE WHEN n > {history} AND n % 10 = 0 THEN :later END, false, '', '', 0,
    CASE WHEN n <= {history} THEN :old END, CASE WHEN n <= {history} THEN :old END
FROM ({numbers}) AS numbers
"""
_MORE = (
    "INSERT INTO payloads (run, payload) SELECT id, '1' FROM runs WHERE id LIKE 'id%'",
    'INSERT INTO attempts (run, number, node, fence, started_at, fingerprint, "left") '
    "SELECT id, 1, '', 0, :old, '', 0 FROM runs WHERE id LIKE 'id%'",
    "INSERT INTO outputs (run, attempt, job, at, head, tail, omitted, complete) "
    "SELECT id, 1, job, :old, '', '', 0, true FROM runs WHERE id LIKE 'id%'",
)
LARGE = ("runs", "payloads", "attempts", "outputs")
_WHOLE = re.compile(rf"(SCAN|Seq Scan on) ({'|'.join(LARGE)})$|(SCAN|Seq Scan on) ({'|'.join(LARGE)})  ", re.MULTILINE)
_NUMBERS = {
    "postgresql": "SELECT generate_series(1, {count}) AS n",
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s",
}


def fill(store: SqlStore, history: int, waiting: int) -> None:
    """Finished runs of all jobs, and runs of others that wait for one lock, for a time and for a pause."""
    statement = _FILL.format(history=history, numbers=_NUMBERS[store.kind].format(count=history + waiting))
    instants = {"old": T0 - 60 * DAY, "later": T0 + 300 * DAY}
    bound = text(statement).bindparams(*(bindparam(name, at, UtcInstant()) for name, at in instants.items()))
    with store._database.migrating() as connection:
        if store.kind == "postgresql":
            for table in LARGE:
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        connection.execute(bound)
        for more in _MORE:
            connection.execute(text(more), {"old": "2026-01-01T00:00:00.000000Z"})


@pytest.fixture
def store(fresh_place: Place) -> Iterator[SqlStore]:
    """Never analyzed, and without the traces of other tests."""
    opened = fresh_place.open()
    yield opened
    opened.close()


HOT: dict[str, Callable[[Transaction], object]] = {
    "claim": lambda tx: tx.runs.claim(Claim("n1", 1, 10), T0),
    "next token": lambda tx: tx.queues.next_token(None, T0),
    "promote": lambda tx: tx.runs.promote(T0),
    "orphaned": lambda tx: tx.runs.orphaned(10),
    "running": lambda tx: tx.runs.running("n1"),
    "elsewhere": lambda tx: tx.runs.elsewhere(),
    "elsewhere, of a job": lambda tx: tx.runs.elsewhere("job-1"),
    "the latest elsewhere": lambda tx: tx.runs.latest_elsewhere("job-1"),
    "cancel requests": lambda tx: tx.runs.cancel_requests("n1"),
    "due": lambda tx: tx.jobs.due(T0, 1, 10),
    "context": lambda tx: tx.jobs.context(JOBS[:3], T0),
    "pending counts": lambda tx: tx.runs.pending_counts(JOBS[:3]),
    "insert": lambda tx: tx.runs.insert([occurrence(JOBS[0], T0 + DAY), new_run(JOBS[0], lock="lock:busy")]),
    "get": lambda tx: tx.runs.get("id1"),
    "by key": lambda tx: tx.runs.by_key("job-1", "k1"),
    "entries": lambda tx: tx.ledger.entries("job-1", T0, T0 + DAY),
    "prune": lambda tx: tx.runs.prune("job-1", DAY, DAY, T0, 10),
    "cancel": lambda tx: tx.runs.request_cancel(["id1"], "", T0),
}

SHOWN: dict[str, Callable[[Queries], object]] = {
    "runs page": lambda q: q.history(RunFilter()),
    "runs of a job": lambda q: q.history(RunFilter(jobs=("job-1",))),
    "failed runs": lambda q: q.history(RunFilter(statuses=(Status.FAILED,))),
    "pending runs": lambda q: q.history(RunFilter(statuses=(Status.PENDING,))),
    "dead letters": lambda q: q.dead_letters(),
    "behind dead letters": lambda q: q.held_up(),
    "behind some dead letters": lambda q: q.held_up(["id1"]),
    "jobs": lambda q: q.jobs(T0),
    "a run": lambda q: q.run("id1"),
    "what a run printed": lambda q: q.output("id1"),
}


def test_no_hot_query_looks_at_every_row(store: SqlStore) -> None:
    set_up(store, [state(name, next_due_at=T0) for name in JOBS])
    fill(store, history=20_000, waiting=2_000)
    add(store, *[occurrence(name, T0) for name in JOBS], new_run(JOBS[0], payload=1))
    running = claim(store, limit=5)
    slow: dict[str, str] = {}

    def check(name: str, statements: list[tuple[str, Any]]) -> None:
        for statement, parameters in statements:
            plan = plan_of(store, statement, parameters)
            if _WHOLE.search(plan):
                slow[name] = f"{statement}\n{plan}"

    for name, use in HOT.items():
        with statements_on(store, LARGE) as statements, store.begin() as tx:
            use(tx)
        assert statements or name == "due", name
        check(name, statements)
    with statements_on(store, LARGE) as statements:
        settle(store, *[settlement(run) for run in running])
    check("settle", statements)
    for name, show in SHOWN.items():
        with statements_on(store, LARGE) as statements, store.queries() as queries:
            show(queries)
        assert statements, name
        check(name, statements)
    assert not slow, "\n\n".join(slow.values())


def test_the_candidates_of_a_claim_come_in_order_from_their_index(store: SqlStore) -> None:
    set_up(store, JOBS)
    fill(store, history=5_000, waiting=1_000)
    add(store, *[new_run(name) for name in JOBS])
    with statements_on(store, ("runs",)) as statements:
        claim(store)
    plans = [plan_of(store, *one) for one in statements if "ORDER BY runs.priority DESC" in one[0]]
    assert plans
    for plan in plans:
        assert "runs_ready" in plan
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan


def test_runs_that_wait_do_not_slow_the_others(store: SqlStore) -> None:
    """100,000 runs wait, most for one lock, a tenth each for a time and a pause: claiming and settling others costs
    about what it costs without them."""
    set_up(store, [*JOBS, "holder"], queues=[Queue("default")])
    add(store, new_run("holder", lock="lock:busy"))
    claim(store)

    def cost(hour: int) -> float:
        best = 9.9
        for number in range(4):
            at = T0 + hour * HOUR + number * MINUTE
            began = time.perf_counter()
            add(store, *[occurrence(name, at) for name in JOBS])
            runs = claim(store, at)
            settle(store, *[settlement(run) for run in runs], now=at + SECOND)
            promote(store, at)
            best = min(best, time.perf_counter() - began)
            assert len(runs) == len(JOBS)
        return best

    before = cost(1)
    fill(store, history=0, waiting=100_000)
    after = cost(2)
    assert after < 5 * before + 0.1, (before, after)
