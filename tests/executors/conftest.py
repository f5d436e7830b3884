from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.supervisor.owner import Owner
from scheduler.supervisor.state import StateLock
from tests.executors.harness import NODE, Bench
from tests.executors.server import Server


@pytest.fixture(scope="session")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    """One supervisor for all tests of this process; each test has runs of its own."""
    lock = StateLock.acquire(tmp_path_factory.mktemp("supervisor"))
    owner = Owner(lock, NODE, lambda pid: None)
    owner.open()
    owner.trust(None, None)
    yield owner
    assert owner.close()
    lock.release()


@pytest.fixture
def own_children(tmp_path: Path) -> Iterator[Owner]:
    """A supervisor that a test may kill."""
    (tmp_path / "own").mkdir()
    lock = StateLock.acquire(tmp_path / "own" / "state")
    owner = Owner(lock, NODE, lambda pid: None)
    owner.open()
    owner.trust(None, None)
    yield owner
    assert owner.close()
    lock.release()


@pytest.fixture
def environ() -> dict[str, str]:
    """The daemon's environment, as tests may fill it."""
    return {}


@pytest.fixture
def bench(children: Owner, tmp_path: Path, environ: dict[str, str]) -> Iterator[Bench]:
    made = Bench(children, tmp_path, environ)
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()
