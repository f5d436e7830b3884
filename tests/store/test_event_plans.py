"""The inbox is read by index, on tables that were never analyzed, whatever lies in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import bindparam, text

from scheduler.core.compensator import Window
from scheduler.core.event import NewEvent, Via
from scheduler.core.event_queries import EventFilter
from scheduler.core.ids import new_id
from scheduler.core.ports import Transaction
from scheduler.core.queries import Queries
from scheduler.core.requests import Claim
from scheduler.store.store import SqlStore
from scheduler.store.types import UtcInstant
from tests.databases import Place
from tests.store.plans import plan_of, statements_on
from tests.store.world import DAY, HOUR, T0, add, claim, new_run, promote, set_up, settle, settlement

COUNT = 20_000
TABLES = ("events", "event_bodies", "listings", "rejects", "runs", "locks")

_EVENTS = """
INSERT INTO events (source, id, via, received_at, type, subject, occurred_at, content_type, vouched_by, found_by,
    problems, webhook_at, duplicates, held)
SELECT CASE WHEN n % 50 = 0 THEN 'rare' ELSE 'shop' END, 'evt_' || n, CASE WHEN n % 100 = 7 THEN 'scan' ELSE 'webhook'
    END, :then, 'order.paid', 'order-' || (n / 4), CASE WHEN n % 10 = 3 THEN NULL ELSE :then END, 'application/json',
    'env SECRET', '', '[]',
    CASE WHEN n % 100 = 7 THEN NULL ELSE :then END, 0, {no}
FROM ({numbers}) AS numbers
"""
_BODIES = "INSERT INTO event_bodies (event, headers, body) SELECT seq, '[]', {body} FROM events"
_LISTINGS = "INSERT INTO listings (event, job, at) SELECT seq, 'nightly', :then FROM events"
_RUNS = """
INSERT INTO runs (id, job, key, cause, status, created_at, queue, priority, attempt, failures, lost, has_payload, note,
    author, fence, started_at, finished_at, event)
SELECT 'of' || seq, 'job', 'event:shop:' || seq, 'event', 'COMPLETED', :then, 'default', 0, 1, 0, 0, {yes}, '', '', 0,
    :then, :then, seq
FROM events
"""
_REJECTS = """
INSERT INTO rejects (source, at, reason, why, headers, query, body)
SELECT 'shop', :then, 'signature_mismatch', '', '[]', '', {body} FROM ({numbers}) AS numbers
"""
_WORDS = {
    "postgresql": {
        "no": "false",
        "yes": "true",
        "body": r"'\x00'::bytea",
        "numbers": f"SELECT generate_series(1, {COUNT}) AS n",
    },
    "sqlite": {
        "no": "0",
        "yes": "1",
        "body": "x'00'",
        "numbers": f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {COUNT}) SELECT n FROM s",
    },
}


@pytest.fixture
def store(fresh_place: Place) -> Iterator[SqlStore]:
    """Never analyzed, with an inbox and the runs of its events."""
    opened = fresh_place.open()
    set_up(opened)
    with opened._database.migrating() as connection:
        if opened.kind == "postgresql":
            for table in TABLES:
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    fill(opened)
    yield opened
    opened.close()


def fill(store: SqlStore) -> None:
    with store._database.migrating() as connection:
        for statement in (_EVENTS, _BODIES, _LISTINGS, _RUNS, _REJECTS):
            written = text(statement.format(**_WORDS[store.kind]))
            if ":then" in statement:
                written = written.bindparams(bindparam("then", T0 - 60 * DAY, UtcInstant()))
            connection.execute(written)


def told(number: int, **changes: Any) -> NewEvent:
    fields: dict[str, Any] = {"occurred_at": T0, "subject": f"order-{number // 4}"}
    return NewEvent("shop", f"evt_{number}", Via.WEBHOOK, T0, b"{}", **{**fields, **changes})


PAGE = [f"evt_{number}" for number in range(1, 1_000)]
SUBJECTS = [f"order-{number}" for number in range(100)]

HOT: dict[str, Callable[[Transaction], object]] = {
    "add": lambda tx: tx.events.add([told(number) for number in range(COUNT - 100, COUNT + 400)]),
    "known": lambda tx: tx.events.known("shop", PAGE),
    "known in a small page": lambda tx: tx.events.known("shop", PAGE[:1]),
    "listed": lambda tx: tx.events.listed("scan", range(1, 500), T0),
    "unlisted": lambda tx: tx.events.unlisted("shop", Window(T0 - HOUR, T0), Window(T0 - HOUR, T0), "scan", 100),
    "newest": lambda tx: tx.events.newest("shop", SUBJECTS),
    "held": lambda tx: tx.events.held(["shop", "rare"], 100),
    "release": lambda tx: tx.events.release(range(1, 500)),
    "get": lambda tx: tx.events.get("shop", "evt_1"),
    "by seq": lambda tx: tx.events.by_seq(range(1, 100)),
    "rejects": lambda tx: tx.events.rejects("shop", 100),
    "rejects of late": lambda tx: tx.events.rejects("shop", 100, since=T0 - DAY),
    "accept": lambda tx: tx.events.accept([1, 2], T0),
    "prune": lambda tx: tx.events.prune("shop", 30 * DAY, T0, 100),
    "prune nothing": lambda tx: tx.events.prune("shop", 90 * DAY, T0, 100),
    "insert runs": lambda tx: tx.runs.insert(
        [new_run("job", lock=f"event:job:{number}", rank=number, event=number) for number in range(200)]
    ),
}
SHOWN: dict[str, Callable[[Queries], object]] = {
    "an event": lambda q: q.event("shop", "evt_1"),
    "a page": lambda q: q.events(EventFilter()),
    "of a source": lambda q: q.events(EventFilter(source="rare")),
    "missed": lambda q: q.events(EventFilter(source="shop", missed=True)),
}
BY_SOURCE = {"of a source"}
"""Pages that do follow a source's events one by one."""


def test_no_verb_reads_the_whole_inbox(store: SqlStore) -> None:
    slow: dict[str, str] = {}

    def check(name: str, statements: list[tuple[str, Any]], tables: Collection[str] = TABLES) -> None:
        assert statements, name
        for statement, parameters in statements:
            plan = plan_of(store, statement, parameters) + "\n"
            bad = [one for one in tables if f"SCAN {one}\n" in plan or f"Seq Scan on {one} " in plan]
            # the newest of all lie at the end of the table itself
            bad = [one for one in bad if name != "a page" or "LIMIT" not in statement]
            if bad or ("events_source " in plan and name not in BY_SOURCE):
                slow[name] = f"{statement}\n{plan}"

    for name, use in HOT.items():
        with statements_on(store, TABLES) as statements, store.begin() as tx:
            use(tx)
        if name != "listed":  # an INSERT
            check(name, statements)
    for name, show in SHOWN.items():
        with statements_on(store, TABLES) as statements, store.queries() as queries:
            show(queries)
        check(name, statements, ("events", "event_bodies", "listings"))
    assert not slow, "\n\n".join(f"{name}:\n{what}" for name, what in slow.items())


def test_a_subject_of_many_events_is_looked_at_once(store: SqlStore) -> None:
    """Where all events are about one thing, the newest of them costs what it costs elsewhere."""
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE events SET subject = 'all' WHERE source = 'shop'")
    costs = {}
    for subject in ("none", "all"):
        took = []
        for _ in range(5):
            began = time.perf_counter()
            with store.read() as tx:
                tx.events.newest("shop", [subject])
            took.append(time.perf_counter() - began)
        costs[subject] = min(took)
    assert costs["all"] < 5 * costs["none"] + 0.005, costs


def test_a_page_of_a_scan_is_one_query(store: SqlStore) -> None:
    with statements_on(store, TABLES) as statements, store.begin() as tx:
        known = tx.events.known("shop", PAGE)
        tx.events.listed("scan", [one.seq for one in known.values()], T0)
    assert len(known) == 980
    assert len(statements) == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_each_line_is_served_from_its_indexes(store: SqlStore, ordered: bool) -> None:
    """However many runs are ready and however many lines there are: a few seeks for each line."""
    runs = [
        new_run("job", key=f"event:shop:{place}-{line}", lock=f"event:job:{line}", rank=place if ordered else None)
        for place in range(2)
        for line in range(600)
    ]
    with store.begin() as tx:
        tx.runs.insert(runs)
    with statements_on(store, TABLES) as statements, store.begin() as tx:
        tx.runs.promote(T0)
        tx.runs.claim(Claim("n1", 1, 10), T0)
        tx.runs.insert([replace(run, id=new_id(), key=f"{run.key}-later") for run in runs])
    plans = [plan_of(store, *one) for one in statements if "min(runs.seq)" in one[0] and "FROM locks" in one[0]]
    assert len(plans) == 3
    for plan in plans:
        assert "runs_front" in plan
        assert "runs_waiting_lock" in plan
        assert "runs_ready" not in plan
        assert "TEMP B-TREE" not in plan
        assert "Sort Key: runs" not in plan
    assert all("runs_ordered" in plan for plan in plans[:2])


_LINE = """
INSERT INTO runs (id, job, key, cause, status, created_at, queue, priority, attempt, failures, lost, lock, waits_for,
    has_payload, note, author, fence, event, rank)
SELECT 'line' || n, 'waiting', 'event:shop:line' || n, 'event', 'PENDING', :then, 'default', 0, 0, 0, 0,
    'event:waiting:a',
    CASE WHEN n % 10 = 0 THEN 'time' ELSE 'lock' END, {no}, '', '', 0, n, {last} - n
FROM ({numbers}) AS numbers
"""


def test_a_long_line_slows_nobody(store: SqlStore) -> None:
    """100,000 runs wait in an order that is not that of their coming, and the first of them for its time: other lines
    are claimed and settled at about the cost that they have without them."""
    set_up(store, ["waiting"], nodes=())

    def cost(round_: str) -> float:
        best = 9.9
        for number in range(4):
            runs = [
                new_run("job", key=f"event:shop:{round_}-{number}-{line}", lock=f"event:job:{line}", rank=number)
                for line in range(20)
            ]
            began = time.perf_counter()
            add(store, *runs)
            claimed = claim(store)
            settle(store, *[settlement(run) for run in claimed])
            promote(store)
            best = min(best, time.perf_counter() - began)
            assert len(claimed) == len(runs)
        return best

    add(store, new_run("waiting", lock="event:waiting:a", rank=-1, not_before=T0 + HOUR))
    before = cost("before")
    words = {**_WORDS[store.kind], "last": "200000"}
    words["numbers"] = words["numbers"].replace(str(COUNT), "100000")
    with store._database.migrating() as connection:
        connection.execute(text(_LINE.format(**words)).bindparams(bindparam("then", T0, UtcInstant())))
    after = cost("after")
    assert after < 5 * before + 0.1, (before, after)
