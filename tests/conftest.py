"""Fixtures for all tests. They are offered here once, so that each test worker has one of every session-wide thing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests.databases import (
    empty_postgres_url,
    fresh_place,
    fresh_postgres_place,
    place,
    postgres_database,
    postgres_place,
    postgres_server,
    sqlite_place,
    sqlite_template,
    store,
)
from tests.statements import compile_once

compile_once()

# A busy machine makes the generation of data slow, which is no finding.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests go to workers by their id: of several with one id only one would run, and nobody would hear of it."""
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise pytest.UsageError(f"several tests have the same id: {', '.join(twice)}")


__all__ = [
    "empty_postgres_url",
    "fresh_place",
    "fresh_postgres_place",
    "place",
    "postgres_database",
    "postgres_place",
    "postgres_server",
    "sqlite_place",
    "sqlite_template",
    "store",
]
