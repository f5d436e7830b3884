from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.store.store import SqlStore
from tests.databases import Place
from tests.faces import Faces
from tests.web.client import Client, client_of


@pytest.fixture
def store(sqlite_place: Place) -> Iterator[SqlStore]:
    with sqlite_place.opened_hastily() as store:
        yield store


@pytest.fixture
def faces(store: SqlStore) -> Faces:
    return Faces(store)


@pytest.fixture
def acting(faces: Faces) -> Iterator[Client]:
    """The API as the Unix socket has it."""
    with client_of(faces.apps()[1]) as client:
        yield client


@pytest.fixture
def reading(faces: Faces) -> Iterator[Client]:
    """The API as TCP has it, for somebody on this machine without a token."""
    with client_of(faces.apps()[0], host="127.0.0.1") as client:
        yield client
