from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.store.store import SqlStore
from tests.cli.screen import Screen
from tests.databases import Place
from tests.faces import Faces, Served


@pytest.fixture
def store(sqlite_place: Place) -> Iterator[SqlStore]:
    with sqlite_place.opened_hastily() as store:
        yield store


@pytest.fixture
def served(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TZ", "Europe/Paris")
    with Faces(store).served() as found:
        yield found


@pytest.fixture
def screen(served: Served, capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(served, capsys)
