from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.postgres import ControlledPostgres
from tests.faults.load import FaultJob
from tests.faults.nodes import FaultNodes

Start = Callable[..., FaultNodes]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlledPostgres]:
    """A server for the tests of one file."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, ControlledPostgres(Path(folder) / "pg") as server:
        yield server


@pytest.fixture
def start(postgres: ControlledPostgres, tmp_path: Path) -> Iterator[Start]:
    """Daemons on an empty database that are ready; gone at the end."""
    with ExitStack() as stack:

        def begin(
            jobs: list[FaultJob],
            count: int,
            prepare: Callable[[FaultNodes], None] = lambda nodes: None,
            **settings: str,
        ) -> FaultNodes:
            with postgres.connect() as connection:
                connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
                connection.execute("CREATE SCHEMA public")
            nodes = FaultNodes(tmp_path, postgres, jobs, count, **settings)
            prepare(nodes)
            return stack.enter_context(nodes)

        yield begin
