"""Who listens through a pooler finds out that nothing would be heard, and polls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler.core.hints import LISTENING, POLLING, Ear, Hearing
from scheduler.store import listen
from scheduler.store.listen import POOLED, UNPROVEN
from scheduler.store.store import open_store
from tests.databases import RELEASE, Place
from tests.pooler.pgbouncer import pgbouncer
from tests.until import until


@contextmanager
def listening(url: str, folder: Path) -> Iterator[Ear]:
    store = open_store(url, folder, release=RELEASE)
    ear = store.ear(set, lambda words: None)
    assert ear is not None
    ear.start()
    try:
        yield ear
    finally:
        ear.stop()
        store.close()


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_known_by_the_number_of_the_process(postgres_place: Place, tmp_path: Path, mode: str) -> None:
    with pgbouncer(postgres_place.url, mode) as bouncer, listening(bouncer.url, tmp_path) as ear:
        until(lambda: ear.hearing == Hearing(POLLING, POOLED))


@pytest.mark.parametrize(
    ("mode", "found"), [("transaction", Hearing(POLLING, UNPROVEN)), ("session", Hearing(LISTENING))]
)
def test_one_that_hides_that_is_put_to_the_proof(
    postgres_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, found: Hearing
) -> None:
    monkeypatch.setattr(listen, "_pid", lambda connection: connection.info.backend_pid)
    monkeypatch.setattr(listen, "PROOF", 1.0)
    with pgbouncer(postgres_place.url, mode) as bouncer, listening(bouncer.url, tmp_path) as ear:
        until(lambda: ear.hearing == found)
