"""What is peculiar to reading a database; `worlds.RowsWorld` passes the contract on both kinds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from compensators import registry
from scheduler.core.compensator import Compensator, Coverage, ListedEvent, ListingFailed, Undecodable, Window
from scheduler.core.errors import InvalidInput
from tests.compensators.worlds import NOON, live_in_shanghai

DAY = Window(NOON - timedelta(days=1), NOON)


def listed(made: Compensator) -> list[ListedEvent | Undecodable]:
    return [one for page in made.pages(DAY, None) for one in page.items]


def ids(made: Compensator) -> list[str]:
    return [one.id for one in listed(made) if isinstance(one, ListedEvent)]


def rows(database: str, query: str, **more: Any) -> Compensator:
    return registry.build("sql_query", {"database": database, "query": query, **more}, {})


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop one.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, at TEXT, state TEXT)")
        for number in range(20):
            connection.execute("INSERT INTO orders VALUES (?, '2026-03-01 09:00:00', 'open')", [number])
    connection.close()
    return path


QUERY = "SELECT id, at AS occurred_at, state FROM orders ORDER BY at, id"


@pytest.mark.parametrize(
    "query",
    [
        "WITH x AS (SELECT 1) DELETE FROM orders WHERE id IN (SELECT id FROM orders ORDER BY id)",
        "SELECT 1 AS id ORDER BY 1; DELETE FROM orders",
    ],
)
def test_sqlite_only_reads(shop: Path, query: str) -> None:
    with pytest.raises(ListingFailed) as error:
        listed(rows(f"sqlite:///{shop}", query))
    assert error.value.final
    assert len(ids(rows(f"sqlite:///{shop}", QUERY))) == 20


def test_a_page_full_of_one_instant_goes_on_also_when_its_last_row_is_gone(shop: Path) -> None:
    made = rows(f"sqlite:///{shop}", QUERY, size=6)
    first, *_ = made.pages(DAY, None)
    assert len(first.items) == 6
    with sqlite3.connect(shop) as connection:
        connection.execute("DELETE FROM orders WHERE id IN (2, 5)")
    connection.close()
    rest = {one.id for page in made.pages(DAY, first.next) for one in page.items if isinstance(one, ListedEvent)}
    assert rest >= {str(number) for number in range(6, 20)}


def test_rows_without_a_body_are_the_body(shop: Path) -> None:
    event = listed(rows(f"sqlite:///{shop}", QUERY))[3]
    assert isinstance(event, ListedEvent)
    assert event.body == {"id": 3, "occurred_at": "2026-03-01 09:00:00", "state": "open"}


def test_rows_out_of_order_are_refused(shop: Path) -> None:
    with sqlite3.connect(shop) as connection:
        connection.execute("INSERT INTO orders VALUES (99, '2026-03-01 10:00:00', 'open')")
    connection.close()
    with pytest.raises(ListingFailed, match="not in the order of occurred_at"):
        listed(rows(f"sqlite:///{shop}", QUERY.replace("BY at, id", "BY id DESC")))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DELETE FROM orders", "with.query: it does not begin with SELECT"),
        ("-- note\n/* more */ UPDATE x", "with.query: it does not begin with SELECT"),
        ("SELECT 1", "with.query: its rows have no order"),
    ],
)
def test_queries_that_are_refused_at_once(query: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        rows("sqlite:////x", query)


def test_another_kind_of_database(tmp_path: Path) -> None:
    with pytest.raises(ListingFailed, match="neither with postgresql"):
        listed(rows("mysql://host/x", QUERY))
    with pytest.raises(ListingFailed, match="unable to open database file") as error:
        listed(rows(f"sqlite:///{tmp_path}/nothing.db", QUERY))
    assert not error.value.final
    assert not list(tmp_path.iterdir()), "looking makes no file"


def test_a_query_that_takes_too_long_is_given_up(shop: Path) -> None:
    forever = (
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT count(*) AS id FROM n ORDER BY 1"
    )
    with pytest.raises(ListingFailed, match="interrupted"):
        listed(rows(f"sqlite:///{shop}", forever, timeout="50ms"))


def test_the_time_is_the_databases(shop: Path) -> None:
    found = rows(f"sqlite:///{shop}", QUERY).coverage()
    assert isinstance(found, Coverage)
    assert found.provider_now is not None
    assert abs(found.provider_now - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.fixture
def postgres_shop(empty_postgres_url: str) -> str:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE orders (id bigint, at timestamptz, price numeric, hook jsonb)")
        connection.execute("INSERT INTO orders VALUES (1, '2026-03-01 09:00Z', 1.10, '{\"a\": 1}')")
    return empty_postgres_url


def test_postgres_with_texts_and_casts_and_percent_signs(postgres_shop: str) -> None:
    query = """
        -- the :start of it, 100 %
        SELECT id, at::timestamptz AS occurred_at, 'it''s :end %' AS type, "price"
        FROM orders WHERE at >= :start AND at <= :end AND 'x' NOT LIKE '%y' /* :start */ ORDER BY at, id
    """
    [event] = listed(rows(postgres_shop, query))
    assert event == ListedEvent(
        "1",
        datetime(2026, 3, 1, 9, tzinfo=UTC),
        {"id": 1, "occurred_at": "2026-03-01T09:00:00+00:00", "type": "it's :end %", "price": "1.10"},
        "it's :end %",
    )


def test_what_it_sets_ends_with_its_transaction(postgres_shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pooler the session is everybody's."""
    live_in_shanghai(postgres_shop)
    settings = "SELECT current_setting('TimeZone') AS zone, current_setting('statement_timeout') AS timeout"
    with psycopg.connect(postgres_shop, row_factory=dict_row) as session:

        @contextmanager
        def pooled(*_: object, **__: object) -> Iterator[object]:
            yield session
            session.commit()

        monkeypatch.setattr(psycopg, "connect", pooled)
        query = f"SELECT orders.id, at AS occurred_at, zone, timeout FROM orders, ({settings}) AS x ORDER BY at"
        [event] = listed(rows(postgres_shop, query, timeout="50s"))
        assert isinstance(event, ListedEvent)
        assert (event.body["zone"], event.body["timeout"]) == ("UTC", "50s")
        assert session.execute(settings).fetchone() == {"zone": "Asia/Shanghai", "timeout": "0"}


@pytest.mark.parametrize(
    "query",
    [
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x ORDER BY id",
        "SELECT id, at AS occurred_at FROM orders ORDER BY id; DELETE FROM orders",
        "SELECT 1 AS id ORDER BY 1; COMMIT; DELETE FROM orders",
        "SELECT id, at AS occurred_at, take() AS body FROM orders ORDER BY at",
    ],
)
def test_postgres_only_reads(postgres_shop: str, query: str) -> None:
    with psycopg.connect(postgres_shop) as connection:
        connection.execute(
            "CREATE FUNCTION take() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM orders; RETURN 1; END $$"
        )
    with pytest.raises(ListingFailed) as error:
        listed(rows(postgres_shop, query))
    assert error.value.final
    assert ids(rows(postgres_shop, "SELECT id, at AS occurred_at FROM orders ORDER BY at")) == ["1"]


def test_a_database_that_is_away_and_a_query_that_takes_too_long(postgres_shop: str) -> None:
    with pytest.raises(ListingFailed) as error:
        listed(rows("postgresql://user:hidden@127.0.0.1:1/x", QUERY))
    assert not error.value.final
    assert "hidden" not in str(error.value)
    with pytest.raises(ListingFailed, match="statement timeout") as error:
        listed(rows(postgres_shop, "SELECT pg_sleep(60)::text ORDER BY 1", timeout="50ms"))
    assert not error.value.final
