from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.children import SupervisedChildren
from scheduler.supervisor.client import SupervisorClient
from tests.executors.harness import NODE, Bench
from tests.executors.server import Server


@pytest.fixture(scope="session")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisedChildren]:
    """One supervisor for all tests of this process; each test has runs of its own."""
    made = SupervisedChildren()
    client = SupervisorClient(NODE, tmp_path_factory.mktemp("supervisor"), made.hear).open()
    client.trust(None, None)
    made.use(client)
    yield made
    assert client.close()
    made.close()


@pytest.fixture
def environ() -> dict[str, str]:
    """The daemon's environment, as tests may fill it."""
    return {}


@pytest.fixture
def bench(children: SupervisedChildren, tmp_path: Path, environ: dict[str, str]) -> Iterator[Bench]:
    made = Bench(children, tmp_path, environ)
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()
