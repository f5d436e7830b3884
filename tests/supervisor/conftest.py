from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.harness import Daemon, Harness, zombies_of

PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True)
def _no_longer_subreaper() -> Iterator[None]:
    """A client makes its process a subreaper; the test process must not stay one for the tests of others."""
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(params=["spawn", "fork"])
def supervisor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A trusted supervisor that starts children in either way; afterwards no zombie is left and it goes when it is
    asked to."""
    harness = Harness(tmp_path, spawns=request.param == "spawn")
    yield harness
    if not harness.client.gone:
        assert zombies_of(harness.client.pid) == []
        assert harness.client.close()
    assert harness.client.gone


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that may be killed; afterwards its supervisor is gone too."""
    small = Daemon(tmp_path)
    yield small
    small.clean_up()
