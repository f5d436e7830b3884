"""Two nodes that reach their database only through PgBouncer in transaction mode."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from scheduler.store.listen import POOLED
from tests.crash.world import World
from tests.databases import Place
from tests.pooler.pgbouncer import PgBouncer, pgbouncer
from tests.until import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120), pytest.mark.xdist_group("load")]

SERVERS = 6
JOBS = """
defaults: {timezone: UTC, catch_up: all, overlap: allow, kill_after: 1s}
jobs:
  tick: {schedule: "* * * * * *", command: ["true"]}
  once: {command: ["true"]}
  slow: {command: [sleep, "300"]}
"""


@pytest.fixture
def bouncer(fresh_postgres_place: Place) -> Iterator[PgBouncer]:
    with pgbouncer(fresh_postgres_place.url, size=SERVERS) as one:
        yield one


@pytest.fixture
def nodes(tmp_path: Path, bouncer: PgBouncer) -> Iterator[list[World]]:
    worlds = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        world = World(folder, uuid.uuid4().hex, bouncer.url, SCHEDULER_LEASE="5s", SCHEDULER_SLOTS="20")
        world.config.write_text(JOBS)
        worlds.append(world)
    with ExitStack() as stack:
        for world in worlds:
            stack.callback(_end, world)
            world.start()
        yield worlds


def test_nothing_is_lost_doubled_or_left_behind(nodes: list[World], bouncer: PgBouncer) -> None:
    first, second = nodes
    until(lambda: {node["hints"] for node in _get(first, "/v1/nodes")["nodes"]} == {f"polling: {POOLED}"})
    until(lambda: _done(second) >= 3)

    asked = _post(first, "/v1/jobs/once/runs", {})
    assert _get(second, f"/v1/runs/{asked['run_id']}?wait=20")["status"] == "COMPLETED"

    slow = _post(first, "/v1/jobs/slow/runs", {})["run_id"]
    until(lambda: _get(first, f"/v1/runs/{slow}")["status"] == "RUNNING")
    _post(second, f"/v1/runs/{slow}/cancel", {})
    until(lambda: _get(second, f"/v1/runs/{slow}")["status"] == "CANCELED")
    assert bouncer.servers() <= SERVERS

    before = _done(second)
    bouncer.stop()
    until(lambda: all(world.get("/readyz")[0] == 503 for world in nodes))
    bouncer.start()
    for world in nodes:
        world.wait_ready()
    until(lambda: _done(second) >= before + 3)

    lost = _post(first, "/v1/jobs/slow/runs", {})["run_id"]
    until(lambda: _get(first, f"/v1/runs/{lost}")["status"] == "RUNNING")
    holder, other = _held_by(nodes, lost)
    holder.kill()
    until(lambda: _get(other, f"/v1/runs/{lost}")["attempt"] == 2)
    _post(other, f"/v1/runs/{lost}/cancel", {})
    until(lambda: _get(other, f"/v1/runs/{lost}")["status"] == "CANCELED")

    assert other.stop() == 0, other.tail()
    found = _ticks(other)
    assert sorted(found) == list(range(min(found), max(found) + 1))
    assert set(found.values()) == {1}
    assert _left_behind(bouncer.url) == {("0", "0", "0", 0, 0)}


def _held_by(nodes: list[World], run: str) -> tuple[World, World]:
    """Who runs it, and who does not."""
    node = _get(nodes[0], f"/v1/runs/{run}")["node"]
    first, second = nodes
    assert first.daemon is not None
    pids = {one["id"]: one["pid"] for one in _get(first, "/v1/nodes")["nodes"]}
    return (first, second) if pids[node] == first.daemon.pid else (second, first)


def _left_behind(url: str) -> set[tuple[Any, ...]]:
    """What stayed on the pooler's connections to the server: limits of time, prepared statements, channels."""
    with ExitStack() as stack:
        found = set()
        for _ in range(SERVERS):
            connection = stack.enter_context(psycopg.connect(url))  # Each keeps a transaction open, and so a server.
            row = connection.execute(
                "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), "
                "current_setting('idle_in_transaction_session_timeout'), "
                "(SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels())",
                prepare=False,
            ).fetchone()
            assert row is not None
            found.add(row)
        return found


def _ticks(world: World) -> Counter[int]:
    """How many runs each instant of `tick` has."""
    runs, _ = world.read_ledger()
    return Counter(run.instant for run in runs if run.job == "tick" and run.instant is not None)


def _done(world: World) -> int:
    return sum(run.job == "tick" and run.status == "COMPLETED" for run in world.read_ledger()[0])


def _get(world: World, path: str) -> Any:
    status, body = world.get(path)
    assert status == 200, body
    return json.loads(body)


def _post(world: World, path: str, body: object) -> Any:
    status, answer = world.ask("POST", path, body)
    assert status in (200, 202), answer
    return json.loads(answer)


def _end(world: World) -> None:
    if world.daemon is not None and world.daemon.poll() is None:
        world.kill()
