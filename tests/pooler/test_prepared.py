"""Behind a pooler nothing is prepared, also where it hides which process answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from scheduler.core.errors import Unavailable
from scheduler.core.job import Queue
from scheduler.store.dialects.postgresql import OFTEN
from scheduler.store.store import SqlStore, open_store
from tests.databases import RELEASE, Place
from tests.pooler.pgbouncer import pgbouncer
from tests.store.world import T0, add, claim, new_run, set_up

THREADS, ROUNDS = 4, 6 * OFTEN


@pytest.fixture
def store(fresh_postgres_place: Place, tmp_path: Path) -> Iterator[SqlStore]:
    with pgbouncer(fresh_postgres_place.url, "transaction", size=2) as bouncer:
        opened = open_store(bouncer.url, tmp_path, release=RELEASE)
        yield opened
        opened.close()


def crowd(store: SqlStore) -> tuple[int, list[str]]:
    """How many runs were taken by threads that share few server processes; and what went wrong meanwhile."""
    set_up(store, queues=[Queue("default")])
    taken: list[str] = []
    wrong: list[str] = []

    def work(thread: int) -> None:
        for number in range(ROUNDS):
            try:
                add(store, new_run("job", key=f"{thread}-{number}"))
                taken.extend(run.id for run in claim(store))
            except Unavailable as error:
                wrong.append(str(error))

    threads = [Thread(target=work, args=[number]) for number in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    taken.extend(run.id for run in claim(store, T0, limit=THREADS * ROUNDS))
    assert len(set(taken)) == len(taken)
    return len(taken), wrong


def test_a_pooler_that_shows_itself(store: SqlStore) -> None:
    assert crowd(store) == (THREADS * ROUNDS, [])


def test_one_that_names_the_first_process_to_its_clients(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[psycopg.pq.abc.PGconn, int] = {}

    def first(info: psycopg.ConnectionInfo) -> int:
        if info.pgconn not in told:
            told[info.pgconn] = int(info.pgconn.exec_(b"SELECT pg_backend_pid()").get_value(0, 0) or b"0")
        return told[info.pgconn]

    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(first))
    taken, wrong = crowd(store)
    assert taken > THREADS * ROUNDS - THREADS * 2
    assert all("of no use any more" in one for one in wrong)
