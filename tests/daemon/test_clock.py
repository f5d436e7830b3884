"""The wall clock of a real daemon is set, forwards and backwards, while jobs run every second (with libfaketime)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.clocks import FakeClock
from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

pytestmark = [pytest.mark.crash, pytest.mark.timeout(180)]

JOBS = """
defaults: {timezone: UTC}
jobs:
  every-second: {schedule: "* * * * * *", command: "true"}
  daily: {schedule: "0 3 * * *", command: "true"}
  by-hand: {command: "true"}
  fails-once:
    command: '[ "$SCHED_ATTEMPT" = 2 ]'
    retries: [3s]
"""


@pytest.fixture
def clock(tmp_path: Path) -> FakeClock:
    return FakeClock(tmp_path / "clock")


@pytest.fixture
def world(make_world: Make, clock: FakeClock) -> World:
    made = make_world(JOBS, **clock.environment)
    made.start()
    return made


def run(world: World, job: str) -> str:
    status, body = world.ask("POST", f"/v1/jobs/{job}/runs", {"payload": 1})
    assert status == 202, body
    return str(json.loads(body)["run_id"])


def clock_problem(world: World) -> bool:
    return any(one["about"] == "clock" for one in json.loads(world.get("/v1/status")[1])["problems"])


def status_of(world: World, run: str) -> str:
    return next(row.status for row in world.read_ledger()[0] if row.id == run)


@pytest.mark.parametrize("step", [3600, -3600, 10, -10])
def test_everything_goes_on_and_nothing_is_doubled(world: World, clock: FakeClock, step: int) -> None:
    wait_for(lambda: Counter(r.status for r in world.read_ledger()[0])["COMPLETED"] >= 3, 20, "jobs run")
    retried = run(world, "fails-once")
    wait_for(lambda: status_of(world, retried) == "PENDING", 5, "a retry waits")
    clock.set(step)
    by_hand = run(world, "by-hand")
    wait_for(lambda: status_of(world, by_hand) == "COMPLETED", 2, "what is tied to no instant goes on within 2 s")
    wait_for(lambda: "clock_stepped" in world.tail(), 5, "the step is logged")
    wait_for(lambda: clock_problem(world) == (step < 0), 5, "status says that jobs wait, and only if they do")
    wait_for(lambda: status_of(world, retried) == "COMPLETED", 30, "the retry does not wait for the hour")
    if step > 0:
        before = len(world.read_ledger()[0])
        wait_for(lambda: len(world.read_ledger()[0]) > before + 2, 10, "jobs run every second again")
    else:
        # No instant runs again: the job goes on with the first instant that has no entry.
        clock.set(0)
        wait_for(lambda: not clock_problem(world), 20, "status says that nothing waits any more")
        before = len(world.read_ledger()[0])
        wait_for(lambda: len(world.read_ledger()[0]) > before + 2, 10, "jobs run when time has caught up")

    status, body = world.get("/v1/audit")
    assert status == 200, body
    audit = json.loads(body)
    assert audit["clean"], audit
    runs, skips = world.read_ledger()
    entries = json.loads(world.get("/v1/runs?limit=1000&skips=false")[1])["entries"]
    assert all(0 <= one["duration_s"] < 60 for one in entries if one["status"] == "COMPLETED")
    covered = Counter(r.instant for r in runs if r.job == "every-second")
    covered.update(at for s in skips if s.job == "every-second" for at in range(s.first, s.last + 1))
    assert max(covered.values()) == 1
    assert sorted(covered) == list(range(min(covered), max(covered) + 1))
