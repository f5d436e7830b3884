from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.store.store import SqlStore
from tests.databases import Place


@pytest.fixture
def store(sqlite_place: Place) -> Iterator[SqlStore]:
    with sqlite_place.opened_hastily() as store:
        yield store
