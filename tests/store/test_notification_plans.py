"""What the notifier asks every second is found by index, however much was ever sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import bindparam, text

from scheduler.core.notification import Fate, Result, Standing
from scheduler.core.notification_queries import NotificationFilter
from scheduler.core.ports import Transaction
from scheduler.core.tiding import Entry, Kind, Tiding
from scheduler.store.store import SqlStore
from scheduler.store.types import UtcInstant
from tests.databases import Place
from tests.store.plans import plan_of, statements_on
from tests.store.world import DAY, MINUTE, T0, set_up

_FILL = """
INSERT INTO notifications (channel, key, kind, job, since, detail, created_at, fate, attempts, next_at, settled_at,
    together)
SELECT 'ops', 'old:' || n, 'missed', 'job', :old, '{}', :old, 'sent', 1, :old, :old, 1 FROM (NUMBERS) AS numbers
"""
_NUMBERS = {
    "postgresql": "SELECT generate_series(1, 20000) AS n",
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 20000) SELECT n FROM s",
}


@pytest.fixture
def store(fresh_place: Place) -> Iterator[SqlStore]:
    """Never analyzed, with a long past and a little that waits."""
    opened = fresh_place.open()
    set_up(opened)
    filling = text(_FILL.replace("NUMBERS", _NUMBERS[opened.kind])).bindparams(bindparam("old", T0 - DAY, UtcInstant()))
    with opened._database.migrating() as connection:
        if opened.kind == "postgresql":
            connection.exec_driver_sql("ALTER TABLE notifications SET (autovacuum_enabled = off)")
        connection.execute(filling)
    with opened.begin() as tx:
        tx.notifications.put([Entry("ops", Tiding(Kind.MISSED, "job", T0, f"new:{number}")) for number in range(3)], T0)
    yield opened
    opened.close()


HOT: dict[str, Callable[[Transaction], Any]] = {
    "due": lambda tx: tx.notifications.due(T0),
    "take": lambda tx: tx.notifications.take("ops", "n1", T0, T0 + MINUTE),
    "waiting": lambda tx: tx.notifications.waiting("ops", 100),
    "give_back": lambda tx: tx.notifications.give_back("ops", "n1", Standing(), [Result(20_001, Fate.SENT, T0)], T0),
    "hasten": lambda tx: tx.notifications.hasten("ops", T0),
    "prune": lambda tx: tx.notifications.prune(T0 - 2 * DAY, 100),
}


@pytest.mark.parametrize("verb", HOT)
def test_nothing_reads_what_was_ever_sent(store: SqlStore, verb: str) -> None:
    with store.begin() as tx:
        tx.notifications.take("ops", "n1", T0, T0 + MINUTE)
    with statements_on(store, ("notifications", "channels")) as statements, store.begin() as tx:
        HOT[verb](tx)
    assert statements
    for statement, parameters in statements:
        plan = plan_of(store, statement, parameters)
        assert "Seq Scan on notifications" not in plan, plan
        assert not any(line.startswith("SCAN notifications") and "INDEX" not in line for line in plan.splitlines()), (
            plan
        )


def test_the_newest_are_listed_without_sorting_all(store: SqlStore) -> None:
    with statements_on(store, ("notifications",)) as statements, store.queries() as queries:
        assert len(queries.notifications(NotificationFilter(), 20)) == 20
    (listing,) = statements
    plan = plan_of(store, *listing)
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
