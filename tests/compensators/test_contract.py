from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.testing.compensators import CompensatorContract, World
from tests.compensators.worlds import FORMS, ProviderWorld, RowsWorld, provider_of, quick


class TestLists(CompensatorContract):
    @pytest.fixture(params=FORMS)
    def world(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
        quick(monkeypatch)
        with provider_of(request.param) as provider:
            yield ProviderWorld(provider, request.param)


class TestRows(CompensatorContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> World:
        return RowsWorld(tmp_path)
