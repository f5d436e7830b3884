from __future__ import annotations

import pytest

from scheduler.store.store import SqlStore
from tests.engine.conftest import logs, postgres, sqlite, store
from tests.scans.provider import ScanRig

__all__ = ["logs", "postgres", "sqlite", "store"]


@pytest.fixture
def rig(store: SqlStore) -> ScanRig:
    return ScanRig(store)
