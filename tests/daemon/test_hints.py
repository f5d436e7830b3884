"""Two nodes that look for work only every twenty seconds: what goes faster goes by hints."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.world import World
from tests.databases import Place
from tests.until import until

SELDOM = ("scheduler.engine.daemon.INTERVAL=20", "scheduler.web.runs.POLL=20")
SOON = 10.0
JOBS = """
jobs:
  long: {command: [sleep, "100"], kill_after: 1s}
  short: {command: [sleep, "1"]}
"""


@pytest.fixture
def pair(fresh_postgres_place: Place, tmp_path: Path) -> Iterator[tuple[World, World]]:
    """The second has one slot, and knows of the first."""
    worlds = []
    for name, slots in (("first", "8"), ("second", "1")):
        folder = tmp_path / name
        folder.mkdir()
        world = World(folder, uuid.uuid4().hex, fresh_postgres_place.url, SCHEDULER_SLOTS=slots)
        world.program = ("tests.tuned", *SELDOM)
        world.config.write_text(JOBS)
        worlds.append(world)
    try:
        for world in worlds:
            world.start()
            until(lambda world=world: '"state": "listening"' in world.log.read_text())  # type: ignore[misc]
        yield worlds[0], worlds[1]
    finally:
        for world in worlds:
            if world.daemon is not None and world.daemon.poll() is None:
                world.kill()


def test_what_one_node_makes_the_other_takes_up_at_once(pair: tuple[World, World]) -> None:
    first, second = pair
    mine = _run(second, "long")
    until(lambda: _status(second, mine) == "RUNNING")

    other = _run(second, "long")  # For which it has no slot.
    until(lambda: _status(second, other) == "RUNNING", SOON)

    second.ask("POST", f"/v1/runs/{other}/cancel", {})
    until(lambda: _status(second, other) == "CANCELED", SOON)

    second.config.write_text(JOBS + '  fresh: {command: ["true"]}\n')
    assert second.ask("POST", "/v1/reload", {})[0] == 200
    until(lambda: first.get("/v1/jobs/fresh")[0] == 200 and _in_force(first), SOON)

    second.ask("POST", f"/v1/runs/{mine}/cancel", {})
    until(lambda: _status(second, mine) == "CANCELED", SOON)
    ended = _run(second, "short")
    assert _get(first, f"/v1/runs/{ended}?wait={SOON:.0f}")["status"] == "COMPLETED"


def _in_force(world: World) -> bool:
    """Whether that node itself has loaded the file with the new job."""
    return '"event": "config_followed", "generation": 2' in world.log.read_text()


def _run(world: World, job: str) -> str:
    status, body = world.ask("POST", f"/v1/jobs/{job}/runs", {})
    assert status == 202, body
    return str(json.loads(body)["run_id"])


def _status(world: World, run: str) -> str:
    return str(_get(world, f"/v1/runs/{run}")["status"])


def _get(world: World, path: str) -> Any:
    status, body = world.get(path)
    assert status == 200, body
    return json.loads(body)
