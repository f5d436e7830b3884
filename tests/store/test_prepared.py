"""What PostgreSQL keeps prepared is found again, and still serves when the tables have grown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import NotSupportedError

from scheduler.core.errors import Unavailable
from scheduler.core.ports import Transaction
from scheduler.store.dialects.postgresql import OFTEN, driver_of
from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.store import test_event_plans, test_plans
from tests.store.world import T0, add, claim, new_run, occurrence, set_up, settle, settlement, state


@pytest.fixture
def store(fresh_postgres_place: Place) -> Iterator[SqlStore]:
    opened = fresh_postgres_place.open()
    yield opened
    opened.close()


def prepared(store: SqlStore) -> int:
    """On the connection that is used last and next."""
    with store._database.reading() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one())


def often(use: Callable[[], object]) -> None:
    for _ in range(OFTEN + 2):
        use()


def test_what_is_written_often_is_prepared_what_is_read_is_not(store: SqlStore) -> None:
    set_up(store)

    def read() -> None:
        with store.read() as tx:
            tx.runs.running("n1")

    before = prepared(store)
    often(read)
    assert prepared(store) == before
    often(lambda: claim(store))
    assert prepared(store) > before


def _forget(store: SqlStore) -> None:
    """Past the driver, which would notice."""
    with store._database.engine.connect() as connection:
        driver_of(connection).pgconn.exec_(b"DEALLOCATE ALL")


def _alter(store: SqlStore) -> None:
    url = store._database.engine.url.set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        connection.execute("ALTER TABLE runs ALTER COLUMN priority TYPE bigint")


def _take_the_names(store: SqlStore) -> None:
    with store._database.engine.connect() as connection:
        for number in range(100):
            driver_of(connection).pgconn.exec_(b"PREPARE _pg3_%d AS SELECT 1" % number)


def test_where_nothing_is_prepared_a_wrong_statement_is_nobody_else_s_fault(store: SqlStore) -> None:
    """It has the same code, and would be tried for ever."""
    with pytest.raises(NotSupportedError), store._inside(store._database.reading) as session:
        session.connection.exec_driver_sql("SELECT DISTINCT name FROM jobs FOR UPDATE")


@pytest.mark.parametrize(("meanwhile", "again"), [(_alter, True), (_forget, False), (_take_the_names, False)])
def test_what_is_of_no_use_any_more_stops_one_transaction_only(
    store: SqlStore, meanwhile: Callable[[SqlStore], None], again: bool
) -> None:
    """And is prepared again, unless somebody else seems to use the same server process."""
    set_up(store)

    def once() -> int:
        add(store, new_run("job"))
        return len(claim(store))

    if meanwhile is not _take_the_names:
        often(once)
    meanwhile(store)
    with pytest.raises(Unavailable, match="of no use any more"):
        often(once)
    often(once)
    assert (prepared(store) > 0) == again


Verbs = Mapping[str, Callable[[Transaction], object]]

NOT_PREPARED = ("rejects of late", "held")
"""Belong to reading transactions, but for taking those that such a one has found: then there are some to plan for."""
VERBS: Verbs = test_plans.HOT | {
    f"events: {name}": use for name, use in test_event_plans.HOT.items() if name not in NOT_PREPARED
}
TABLES = {*test_plans.LARGE, *test_event_plans.TABLES}


def read_by(store: SqlStore, use: Callable[[], object]) -> int:
    """Rows of tables and entries of indexes that were looked at."""

    def total() -> int:
        for words in ("SELECT pg_stat_force_next_flush()", "SELECT pg_stat_clear_snapshot()"):
            with store._database.migrating() as connection:
                connection.exec_driver_sql(words)
        query = (
            "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)"
            " + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)"
        )
        with store._database.migrating() as connection:
            return int(connection.exec_driver_sql(query).scalar_one())

    before = total()
    use()
    return total() - before


def test_plans_of_empty_tables_still_serve_when_these_are_full(store: SqlStore) -> None:
    """At worst the server keeps every plan from when there was nothing: no statistics tell it that there is more now.
    What the verbs look at then is not much more than with a plan for what is there."""
    set_up(store, [state(name, next_due_at=T0) for name in test_plans.JOBS])
    with store._database.migrating() as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")

    def use(name: str) -> Callable[[], None]:
        def used() -> None:
            with store.begin() as tx:
                VERBS[name](tx)

        return used

    def settle_some() -> None:
        add(store, *[new_run(name) for name in test_plans.JOBS])
        settle(store, *[settlement(run) for run in claim(store)])

    def planning(mode: str) -> None:
        def choose(connection: Any, _record: object) -> None:
            connection.autocommit = True
            connection.execute(f"SET plan_cache_mode = {mode}")

        store._database.engine.dispose()
        event.listen(store._database.engine, "connect", choose)

    def looked_at() -> dict[str, int]:
        return {name: read_by(store, use(name)) for name in VERBS} | {"settle": read_by(store, settle_some)}

    planning("force_generic_plan")
    for name in VERBS:
        often(use(name))
    often(settle_some)
    assert prepared(store) > 50
    with store._database.migrating() as connection:
        for table in test_event_plans.TABLES:
            connection.exec_driver_sql(f"DELETE FROM {table}")
        connection.exec_driver_sql("SELECT setval(pg_get_serial_sequence('events', 'seq'), 1, false)")
    test_plans.fill(store, history=20_000, waiting=2_000)
    test_event_plans.fill(store)
    add(store, *[occurrence(name, T0) for name in test_plans.JOBS])
    looked_at()  # What waited and could go on has done so.
    kept = looked_at()
    planning("force_custom_plan")
    fitting = looked_at()
    assert not {name: (kept[name], fitting[name]) for name in kept if kept[name] > 2 * fitting[name] + 200}
