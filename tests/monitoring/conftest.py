from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.monitoring.tools import Monitoring, free_port, monitoring

Daemon = Callable[..., World]
Watching = Callable[..., Monitoring]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Daemons with a fixed address, not yet started; killed at the end."""
    worlds: list[World] = []

    def make(text: str, name: str = "a", url: str = "", **settings: str) -> World:
        folder = tmp_path / name
        folder.mkdir()
        world = World(folder, uuid.uuid4().hex, url, SCHEDULER_LISTEN=f"127.0.0.1:{free_port()}", **settings)
        world.config.write_text(text)
        worlds.append(world)
        return world

    yield make
    for world in worlds:
        if world.daemon is not None and world.daemon.poll() is None:
            world.kill()


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[Watching]:
    """A Prometheus and an Alertmanager that look at these daemons."""
    with ExitStack() as stack:

        def start(*worlds: World) -> Monitoring:
            targets = [world.environment()["SCHEDULER_LISTEN"] for world in worlds]
            return stack.enter_context(monitoring(tmp_path / "monitoring", targets))

        yield start
