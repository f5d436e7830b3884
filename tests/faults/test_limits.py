"""Every connection has its time limits, in the server, in the kernel and here; nothing waits for ever."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from scheduler.core.errors import Unavailable
from scheduler.store.bounded import SILENCE, BoundedConnection
from scheduler.store.store import SqlStore, open_store
from tests.chaos.postgres import ControlledPostgres
from tests.chaos.proxy import Proxy
from tests.databases import RELEASE
from tests.store.world import add, new_run, set_up

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]

SHORT = 1.0
"""Seconds of silence that are too long here."""


@pytest.fixture
def proxy(postgres: ControlledPostgres) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", postgres.port)) as proxy:
        yield proxy


@pytest.fixture
def store(postgres: ControlledPostgres, proxy: Proxy, tmp_path: Path) -> Iterator[SqlStore]:
    with postgres.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        connection.execute("CREATE SCHEMA public")
    store = open_store(postgres.url(proxy.port), tmp_path, release=RELEASE)
    yield store
    proxy.reset()
    store.close()


def test_every_transaction_is_limited_in_the_server(store: SqlStore) -> None:
    limits = {
        "statement_timeout": "2s",
        "lock_timeout": "2s",
        "idle_in_transaction_session_timeout": "2s",
        "tcp_user_timeout": "1000",  # as the kernel says, in milliseconds
    }
    for opened in (store._database.writing, store._database.reading):
        with opened() as connection:
            assert {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in limits} == limits
    with store._database.engine.connect() as connection:
        assert {connection.exec_driver_sql(f"SHOW {name}").scalar() for name in limits} == {"0"}


def test_every_connection_is_limited_in_the_kernel(store: SqlStore) -> None:
    with store._database.writing() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        with socket.socket(fileno=socket.dup(driver.fileno())) as end:
            tcp = {
                option: end.getsockopt(socket.IPPROTO_TCP, getattr(socket, option))
                for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            }
            assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert tcp == {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}


def test_what_a_slow_server_needs_to_end_a_statement_is_waited_for(store: SqlStore) -> None:
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="took too long"), store._inside(store._database.writing) as session:
        session.connection.exec_driver_sql("SELECT pg_sleep(30)")
    assert 1.9 < time.monotonic() - begun < SILENCE


@pytest.mark.parametrize("fault", ["black_hole", "half_open", "stall"])
def test_a_server_that_is_silent_is_given_up(
    store: SqlStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Nothing in the kernel would notice: the proxy goes on acknowledging."""
    set_up(store)
    monkeypatch.setattr(BoundedConnection, "silence", SHORT)
    getattr(proxy, fault)()
    begun = time.monotonic()
    with pytest.raises(Unavailable, match="no answer from the server for 1 s"):
        add(store, new_run("job"))
    assert SHORT < time.monotonic() - begun < SHORT + 3
    proxy.pass_through()
    add(store, new_run("job"))


def test_an_answer_that_comes_slowly_is_waited_for(
    store: SqlStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedConnection, "silence", SHORT)
    proxy.slow(20_000)
    with store._database.reading() as connection:
        begun = time.monotonic()
        assert len(str(connection.exec_driver_sql("SELECT repeat('x', 30000)").scalar())) == 30_000
        assert time.monotonic() - begun > SHORT


def test_a_migration_waits_as_long_as_it_takes(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedConnection, "silence", 0.2)
    with store._database.migrating() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(1)")


def test_whoever_stops_in_the_midst_of_an_answer_keeps_no_locks(store: SqlStore, postgres: ControlledPostgres) -> None:
    set_up(store)
    with ExitStack() as stack:
        stopped = stack.enter_context(ExitStack())
        connection = stopped.enter_context(store._database.writing())
        connection.exec_driver_sql("UPDATE jobs SET alarm = ''")
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        driver.pgconn.send_query(b"SELECT repeat('x', 60000000)")
        other = stack.enter_context(postgres.connect())
        other.execute("SET lock_timeout = '20s'")
        begun = time.monotonic()
        other.execute("UPDATE jobs SET alarm = NULL")
        freed = time.monotonic() - begun
        driver.pgconn.finish()
        with pytest.raises(OperationalError):
            stopped.close()
    print(f"freed after {freed:.1f} s")
    assert freed < 10
