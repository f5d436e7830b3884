"""kill -9 every few seconds, and a provider of whom everything goes wrong: each event that it lists is there, once.

    TESTS_LONG=1 make test WORKERS=1 ARGS='-k hostile_provider_and_kills'

is the long form: 20,000 events, of which three in ten are never sent.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.testing.demo import jobs
from scheduler.testing.faults import HOSTILE
from scheduler.testing.provider import Provider
from tests.crash.world import World
from tests.long import LONG

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800), pytest.mark.xdist_group("load")]

EVENTS, RATE = (20_000, 150.0) if LONG else (400, 40.0)
EVERY = 5 if LONG else 2
"""Seconds from scan to scan."""
LULL = (2.0, 6.0) if LONG else (1.0, 3.0)
"""Seconds from one kill to the next."""
PATIENCE = 600.0 if LONG else 120.0
"""Seconds after the last event until a scan must have found the rest."""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_hostile_provider_and_kills(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> None:
    url = request.getfixturevalue("fresh_postgres_place").url if database == "postgresql" else ""
    port = _free_port()
    with Provider(HOSTILE, seed=3) as provider:
        secrets = {"DEMO_KEY": provider.key, "DEMO_SECRET": provider.secret}
        settings = {"SCHEDULER_WEBHOOK_LISTEN": f"127.0.0.1:{port}", "SCHEDULER_QUEUES": "scans", **secrets}
        if url:
            settings["SCHEDULER_LEASE"] = "5s"
        world = World(tmp_path, "compensation", url, **settings)
        world.config.write_text(jobs(provider.url, tmp_path / "handled", EVERY))
        world.start()
        sender = provider.sender(f"http://127.0.0.1:{port}/webhooks/demo")
        options = {"rate": RATE, "until": lambda: len(provider.facts.all()) >= EVENTS}
        feed = threading.Thread(target=provider.feed, args=(sender,), kwargs=options)
        feed.start()
        chance = random.Random(database)
        kills = 0
        try:
            while feed.is_alive():
                feed.join(chance.uniform(*LULL))
                world.kill()
                kills += 1
                world.start()
            happened = {one.id for one in provider.facts.all()}
            _until(lambda: len(_stored(world)) >= len(happened), "all events are there")
            _until(lambda: _last(world)["complete"] and not _last(world)["injected"], "a scan finds nothing more")
            reports = _reports(world)
        finally:
            world.stop()
    stored = _stored(world)
    runs = Counter(row[0] for row in world._rows("SELECT key FROM runs WHERE job = 'handle'"))

    assert kills >= 2
    assert len(happened) >= EVENTS
    assert set(stored) == happened, "nothing is unaccounted for, and nothing else is there"
    assert runs == Counter({f"event:demo:{one}": 1 for one in happened})
    assert sender.accepted <= happened
    assert {one for one, way in stored.items() if way == "scan"} >= happened - set(sender.sent)
    for report in reports:
        parts = ("known", "injected", "too_young", "undecodable")
        assert report["listed"] == sum(report[part] for part in parts), report
    assert not any(report["holes"] for report in reports)


def _stored(world: World) -> dict[str, str]:
    """By which way each event of the inbox came first."""
    return {row[0]: str(row[1]).lower() for row in world._rows("SELECT id, via FROM events")}


def _reports(world: World) -> list[dict[str, Any]]:
    """The newest first."""
    found: list[dict[str, Any]] = json.loads(world.get("/v1/scans?job=scan&limit=1000")[1])["reports"]
    return found


def _last(world: World) -> dict[str, Any]:
    return next(iter(_reports(world)), {"complete": False})


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not true after {PATIENCE:.0f} s: {what}"
        threading.Event().wait(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
