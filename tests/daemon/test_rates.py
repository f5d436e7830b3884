"""The rate of a queue, as a daemon keeps it whose loops turn once a second by themselves."""

from __future__ import annotations

import json
from datetime import datetime

from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

COUNT = 21
JOBS = """
defaults: {timezone: UTC, heartbeat: false}
queues: {api: {rate: 10/s}}
jobs:
  call: {queue: api, command: ["true"]}
"""


def test_tokens_that_come_between_two_turns_are_used(make_world: Make) -> None:
    world = make_world(JOBS)
    world.start()
    status, answer = world.ask("POST", "/v1/jobs/call/runs", {"runs": [{"payload": n} for n in range(COUNT)]})
    assert status == 202, answer
    runs = [one["run_id"] for one in json.loads(answer)["runs"]]
    wait_for(lambda: all(run.status == "COMPLETED" for run in world.read_ledger()[0]), 60, "all have run", step=0.1)
    began = sorted(
        datetime.fromisoformat(json.loads(world.get(f"/v1/runs/{run}")[1])["started_at"]).timestamp() for run in runs
    )
    # Ten seconds are for a busy machine: one a second would take twenty.
    assert (COUNT - 2) / 10 <= began[-1] - began[0] <= 10
    assert world.stop() == 0
