"""Fixtures for all tests. They are offered here once, so that each test worker has one of every session-wide thing."""

from __future__ import annotations

import signal
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

# A shell that starts the tests in the background has both ignored, and so would have every program under test.
for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, default)

# A busy machine makes the generation of data slow, which is no finding.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests go to workers by their id, and by the group that xdist adds to it. Where ids are not what they should be,
    tests are left out or disturb each other, and nobody hears of it."""
    twice = [name for name, count in Counter(item.nodeid for item in session.items).items() if count > 1]
    if twice:
        raise pytest.UsageError(f"several tests have the same id, of which one would run: {', '.join(twice)}")
    grouped = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group")]
    torn = [name for name in grouped if "@" not in name]
    if session.config.getoption("loadgroup", False) and torn:
        raise pytest.UsageError(f"pytest-xdist does not keep groups together with this pytest: {', '.join(torn)}")


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
