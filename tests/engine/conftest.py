from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from sqlalchemy import event

from scheduler.store.store import SqlStore
from tests.databases import Place


def opened(place: Place) -> Iterator[SqlStore]:
    """A store that does not wait for the disk: these tests do not pull the plug."""
    store = place.open()
    engine = store._database.engine  # type: ignore[attr-defined]
    if place.kind == "sqlite":
        engine.dispose()
        event.listen(engine, "connect", hasty)
    yield store
    store.close()


def hasty(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What was logged."""
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture
def store(place: Place) -> Iterator[SqlStore]:
    """Of each kind in turn."""
    yield from opened(place)


@pytest.fixture
def sqlite(sqlite_place: Place) -> Iterator[SqlStore]:
    yield from opened(sqlite_place)


@pytest.fixture
def postgres(postgres_place: Place) -> Iterator[SqlStore]:
    yield from opened(postgres_place)
