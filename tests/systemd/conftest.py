from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.systemd.manager import Manager

Hire = Callable[..., Manager]


@pytest.fixture
def hire(tmp_path: Path) -> Iterator[Hire]:
    """Service managers that listen at a path of this test, or at an abstract name."""
    hired: list[Manager] = []

    def make(*, abstract: bool = False, watchdog: float | None = None) -> Manager:
        name = f"@schedulerd-test-{uuid.uuid4().hex}" if abstract else str(tmp_path / f"notify{len(hired)}")
        hired.append(Manager(name, watchdog))
        return hired[-1]

    yield make
    for manager in hired:
        manager.close()


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Worlds with the given jobs.yaml, not yet started; whatever still runs at the end is killed."""
    worlds: list[World] = []

    def make(text: str, **settings: str) -> World:
        world = World(tmp_path, uuid.uuid4().hex, **settings)
        world.config.write_text(text)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        if world.daemon is not None and world.daemon.poll() is None:
            world.kill()
