from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.world import World

Make = Callable[..., World]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Make]:
    """Worlds with the given jobs.yaml, not yet started; whatever still runs at the end is killed."""
    worlds: list[World] = []

    def make(text: str, folder: Path | None = None, **settings: str) -> World:
        world = World(folder or tmp_path, uuid.uuid4().hex, **settings)
        world.config.write_text(text)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        if world.daemon is not None and world.daemon.poll() is None:
            world.kill()
