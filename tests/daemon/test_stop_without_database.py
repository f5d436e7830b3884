"""A daemon that is told to stop while its database is gone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from scheduler.life import UNWRITTEN
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]

JOBS = """
defaults: {timezone: UTC}
jobs:
  seconds: {schedule: "* * * * * *", command: ["true"]}
  long: {command: ["sleep", "600"], kill_after: 1s}
"""
LONGEST_INTERVAL = 3.0
"""Seconds between two beats, here: a loop that asks the database so seldom turns well in between."""


def test_it_ends_soon_and_says_once_what_was_not_written(make_world: Make, tmp_path: Path) -> None:
    world = make_world(JOBS, SCHEDULER_DRAIN_TIMEOUT="1s")
    beats = f"scheduler.engine.beats.LONGEST_INTERVAL={LONGEST_INTERVAL}"
    world.program = ("tests.tuned", beats, "scheduler.engine.drain.SETTLING=3")
    world.start()
    status, body = world.ask("POST", "/v1/jobs/long/runs", {})
    assert status == 202
    run = json.loads(body)["run_id"]
    wait_for(lambda: b"RUNNING" in world.get(f"/v1/runs/{run}")[1], 15, "the run has begun")
    for path in world.state.glob("scheduler.db*"):
        path.unlink()
    wait_for(lambda: "removed or replaced" in world.tail(), 15, "the log says that the database file is gone")
    gone = time.monotonic()
    wait_for(lambda: time.monotonic() - gone > LONGEST_INTERVAL + 1, 20, "loops that seldom ask have turned")
    begun = time.monotonic()
    assert world.stop() == UNWRITTEN
    assert time.monotonic() - begun < 30
    events = [json.loads(line) for line in world.log.read_text().splitlines()]
    (told,) = [one for one in events if one["event"] == "drain_unwritten"]
    assert told["not_written"].startswith("how ")
    assert told["not_written"].endswith(" ended and that it left")
    assert f"long ({run[-8:]})" in told["runs"]
    assert "removed or replaced" in told["reason"]
    said = [one["event"] for one in events if one["event"] in ("loop_waits", "loop_recovered")]
    assert said == ["loop_waits"]
