from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.testing.compensators import CompensatorContract, World
from tests.compensators.worlds import (
    FORMS,
    ProviderWorld,
    RowsWorld,
    live_in_shanghai,
    postgres_executes,
    provider_of,
    quick,
    sqlite_executes,
)


class TestLists(CompensatorContract):
    @pytest.fixture(params=FORMS)
    def world(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
        quick(monkeypatch)
        with provider_of(request.param) as provider:
            yield ProviderWorld(provider, request.param)


class TestRows(CompensatorContract):
    @pytest.fixture(params=["sqlite", "TIMESTAMPTZ", "TIMESTAMP"])
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> World:
        if request.param == "sqlite":
            path = tmp_path / "shop.db"
            return RowsWorld(f"sqlite:///{path}", sqlite_executes(path), "TEXT")
        url = request.getfixturevalue("empty_postgres_url")
        live_in_shanghai(url)
        return RowsWorld(url, postgres_executes(url), request.param)
