from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from scheduler.store.store import SqlStore
from tests.databases import Place


@pytest.fixture
def store(sqlite_place: Place) -> Iterator[SqlStore]:
    with sqlite_place.opened_hastily() as store:
        yield store


@pytest.fixture
def logs_as_they_were() -> Iterator[None]:
    """Undoes what a test configures."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
