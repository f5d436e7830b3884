from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from scheduler.engine import worker
from scheduler.store.store import SqlStore
from tests.databases import Place


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What was logged."""
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture(autouse=True)
def whole_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick settles all that has ended, however busy the machine is that runs the test."""
    monkeypatch.setattr(worker, "LONGEST_ROUND", 60.0)


@pytest.fixture
def store(place: Place) -> Iterator[SqlStore]:
    """Of each kind in turn."""
    with place.opened_hastily() as store:
        yield store


@pytest.fixture
def sqlite(sqlite_place: Place) -> Iterator[SqlStore]:
    with sqlite_place.opened_hastily() as store:
        yield store


@pytest.fixture
def postgres(postgres_place: Place) -> Iterator[SqlStore]:
    with postgres_place.opened_hastily() as store:
        yield store
