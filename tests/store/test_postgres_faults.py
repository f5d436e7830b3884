"""A server that is away, slow, read-only: told in words; nothing that a pooler in transaction mode would break."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_plus

import psycopg
import pytest

from scheduler.core.errors import StartError, Unavailable
from scheduler.store.store import SqlStore, open_database, open_store
from tests.databases import RELEASE, Place
from tests.store.world import add, new_run, set_up


@pytest.fixture
def store(postgres_place: Place) -> Iterator[SqlStore]:
    opened = postgres_place.open()
    yield opened
    opened.close()


def test_no_server(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="connection"):
        open_store(f"postgresql://me@/name?host={tmp_path}", tmp_path, release=RELEASE)


def test_what_to_look_at_is_known_while_the_server_is_away(tmp_path: Path) -> None:
    store = SqlStore(open_database(f"postgresql://me:secret@/name?host={tmp_path}", tmp_path))
    status = store.db_status()
    store.close()
    assert "connection" in str(status.away)
    assert "goes on by itself" in str(status.hint)
    assert shlex.split(status.look) == ["pg_isready", "-d", f"postgresql://me@/name?host={quote_plus(str(tmp_path))}"]
    assert "secret" not in str(status)


def test_every_transaction_has_its_time_limits_and_leaves_none_behind(store: SqlStore) -> None:
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    for opened in (store._database.writing, store._database.reading):
        with opened() as connection:
            assert {connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names} == {"2s"}
    with store._database.engine.connect() as connection:
        assert {connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names} == {"0"}


def test_a_statement_that_takes_too_long(store: SqlStore) -> None:
    slow = "SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(30)"
    with pytest.raises(Unavailable, match="took too long"), store._inside(store._database.writing) as session:
        session.connection.exec_driver_sql(slow)


def test_a_row_that_is_locked_for_too_long(store: SqlStore) -> None:
    set_up(store)
    impatient = "SET LOCAL lock_timeout = '20ms'; UPDATE jobs SET alarm = ''"

    def write() -> None:
        with store._inside(store._database.writing) as session:
            session.connection.exec_driver_sql(impatient)

    with store.begin() as tx:
        tx.jobs.states(["job"], lock=True)
        with pytest.raises(Unavailable, match="locked by somebody"):
            write()


def test_a_connection_that_breaks_and_the_next_that_works(store: SqlStore, postgres_place: Place) -> None:
    set_up(store)
    with psycopg.connect(postgres_place.url, autocommit=True) as other:

        def break_off() -> None:
            with store.begin() as tx:
                tx.runs.insert([new_run("job")])
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

        with pytest.raises(Unavailable):
            break_off()
    add(store, new_run("job"))
    with store.queries() as queries:
        assert queries.queues()[0].ready == 1


def test_a_standby(fresh_postgres_place: Place) -> None:
    store = fresh_postgres_place.open()
    set_up(store)
    store.close()
    with psycopg.connect(fresh_postgres_place.url, autocommit=True) as other:
        name = other.info.dbname
        other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")  # type: ignore[call-overload]
    with pytest.raises(Unavailable, match="read-only standby"):
        add(store, new_run("job"))
    store.close()


def test_a_reader_sees_one_state(store: SqlStore) -> None:
    set_up(store)
    with store.queries() as queries:
        before = queries.queues()[0].ready
        add(store, new_run("job"))
        assert queries.queues()[0].ready == before


def test_a_reader_writes_nothing(store: SqlStore) -> None:
    with pytest.raises(Unavailable, match="read-only"), store.read() as tx:
        tx.generations.set_value("a", "b")


@pytest.mark.parametrize(
    ("text", "hopeless"),
    [
        ('connection failed: FATAL:  password authentication failed for user "me"', True),
        ("connection failed: fe_sendauth: no password supplied", True),
        ('connection failed: FATAL:  Peer authentication failed for user "me"', True),
        ('connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "me", database "d"', True),
        ('connection failed: FATAL:  permission denied for database "d"', True),
        ('invalid sslmode value: "yes"', True),
        ("connection failed: Connection refused\n\tIs the server running on that host?", False),
        ('could not translate host name "db" to address: Temporary failure in name resolution', False),
        ("connection failed: FATAL:  the database system is starting up", False),
        ("connection failed: FATAL:  sorry, too many clients already", False),
        ("server closed the connection unexpectedly", False),
    ],
)
def test_what_no_waiting_would_help(tmp_path: Path, text: str, hopeless: bool) -> None:
    database = open_database("postgresql://me:geheim@host/d", tmp_path)
    mistake = database.mistake(psycopg.OperationalError(text))
    database.close()
    assert (mistake is not None) is hopeless
    assert "geheim" not in str(mistake)


def test_a_user_who_may_not_make_tables_is_told_what_to_grant(empty_postgres_url: str, tmp_path: Path) -> None:
    """As every user but the owner, from PostgreSQL 15 on."""
    name = f"guest_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM public")
        try:
            with pytest.raises(StartError, match="permission denied for schema public") as refused:
                open_store(empty_postgres_url.replace("//postgres:", f"//{name}:"), tmp_path, release=RELEASE)
            assert "OWNER TO" in (refused.value.hint or "")
        finally:
            connection.execute(f"DROP OWNED BY {name}")
            connection.execute(f"DROP ROLE {name}")
