"""A daemon that is stopped for a while and goes on, as one on a machine that was suspended: what ended meanwhile is
dated as it ended, what still runs goes on running, and status says what happened to the supervisor."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any

import psycopg
import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]

SILENCE = 4.0
"""Seconds for which the supervisor may be silent here; without a test it is 10."""
HURRIED = (
    "tests.tuned",
    f"scheduler.engine.beats.LONGEST_SILENCE={SILENCE}",
    f"scheduler.engine.health.SILENT={SILENCE / 2}",
)
JOBS = """
defaults: {timezone: UTC}
jobs:
  short: {command: sleep 2}
  long: {command: sleep 60}
  stops-it: {command: kill -STOP $PPID; sleep 60}
"""


@pytest.fixture
def world(make_world: Make) -> World:
    made = make_world(JOBS)
    made.program = HURRIED
    made.start()
    return made


def start(world: World, job: str) -> str:
    status, body = world.ask("POST", f"/v1/jobs/{job}/runs", {})
    assert status == 202, body
    run = str(json.loads(body)["run_id"])
    wait_for(lambda: look(world, run)["status"] == "RUNNING", 10, f"{job} runs")
    return run


def look(world: World, run: str) -> Any:
    return json.loads(world.get(f"/v1/runs/{run}")[1])


def problems(world: World) -> Any:
    return json.loads(world.get("/v1/status")[1])["problems"]


def test_what_ended_meanwhile_and_what_did_not(world: World) -> None:
    short, long = start(world, "short"), start(world, "long")
    assert world.daemon is not None
    world.daemon.send_signal(signal.SIGSTOP)
    threading.Event().wait(SILENCE + 2)
    world.daemon.send_signal(signal.SIGCONT)
    wait_for(lambda: look(world, short)["status"] == "COMPLETED", 10, "the short run is settled")
    ended = look(world, short)
    assert ended["duration_exact"]
    assert 1.9 < ended["duration_s"] < 5.0
    assert ended["elapsed_s"] < SILENCE + 2
    # What is hasty would have called the supervisor dead by now: it is asked every second.
    threading.Event().wait(1.5)
    assert look(world, long)["attempt"] == 1
    assert look(world, long)["status"] == "RUNNING"
    assert [one for one in problems(world) if one["kind"] != "failing"] == []


def test_a_supervisor_that_is_stopped_is_seen_and_told_of(world: World) -> None:
    supervisor = world.supervisor()
    run = start(world, "stops-it")

    def said() -> list[str]:
        return [one["what"] for one in problems(world) if one["kind"] == "daemon"]

    wait_for(lambda: any(f"process {supervisor}" in what for what in said()), 10, "status says that it is silent")
    wait_for(lambda: any("was replaced" in what for what in said()), 30, "status says that it was replaced")
    wait_for(lambda: look(world, run)["lost"] == 1, 30, "what it ran was lost")


def test_a_node_that_was_declared_dead_begins_anew_once(make_world: Make, empty_postgres_url: str) -> None:
    """Its children end, another supervisor comes, and that is all: the end of the former one is no second loss."""
    world = make_world(JOBS, url=empty_postgres_url, SCHEDULER_LEASE="12s")
    world.start()
    first, run = world.supervisor(), start(world, "long")
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE nodes SET state = 'dead'")
    wait_for(lambda: look(world, run)["lost"] == 1, 30, "its run is lost")
    wait_for(lambda: look(world, run)["status"] == "RUNNING", 30, "it runs again")
    second = world.supervisor()
    assert second not in (None, first)
    threading.Event().wait(1.5)
    assert world.supervisor() == second
    assert look(world, run)["status"] == "RUNNING"
    assert world.tail().count("declared_dead") == 1
    assert "supervisor_gone" not in world.tail()
