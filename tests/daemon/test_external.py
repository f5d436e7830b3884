"""An external job and a real daemon: pings over the address for strangers, through kill -9 and a restart."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for

JOBS = """
defaults: {timezone: UTC}
jobs:
  nightly: {external: true, schedule: "0 2 * * *"}
  brief: {external: true, timeout: 1s, acknowledge: unexpected}
  ours: {schedule: "0 2 * * *", command: ["true"]}
"""
RID = "0198b6a2-3f4e-7c31-9d27-5a1b2c3d4e5f"
SCHEDCTL = [sys.executable, "-c", "from scheduler.cli.main import main; main()"]


def address(world: World, name: str) -> str:
    """Of the daemon that was started last, as its log has it."""
    return str(json.loads(started(world)[-1])[name])


def started(world: World) -> list[str]:
    """The lines that say where a daemon listens."""
    text = world.log.read_text() if world.log.exists() else ""
    return [line for line in text.splitlines(keepends=True) if '"event": "started"' in line and line.endswith("\n")]


def ping(world: World, path: str, body: bytes = b"") -> tuple[int, str]:
    port = int(re.findall(r":(\d+)$", address(world, "webhooks"))[0])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("POST", path, body=body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def runs(world: World, job: str = "nightly") -> list[dict[str, Any]]:
    _, body = world.ask("GET", f"/v1/runs?job={job}")
    found: list[dict[str, Any]] = json.loads(body)["entries"]
    return found


def start(world: World) -> None:
    before = len(started(world))
    world.start()
    wait_for(lambda: len(started(world)) > before, 20, "it says where it listens")


def test_a_run_elsewhere_outlives_the_daemon(make_world: Make, tmp_path: Path) -> None:
    world = make_world(JOBS, SCHEDULER_WEBHOOK_LISTEN="127.0.0.1:0")
    start(world)
    _, body = world.ask("POST", "/v1/tokens", {"name": "db7", "role": "ping"})
    key = json.loads(body)["secret"]
    assert ping(world, f"/ping/{key}/nightly/start?rid={RID}", b"begun\n") == (200, "OK")
    assert ping(world, f"/ping/{key}x/nightly/start") == (404, "not found")
    assert ping(world, f"/ping/{key}/ours")[0] == 409
    world.kill()
    start(world)
    assert [one["status"] for one in runs(world)] == ["RUNNING"]
    assert world.stop() == 0
    start(world)
    assert [one["status"] for one in runs(world)] == ["RUNNING"]
    assert ping(world, f"/ping/{key}/nightly/7?rid={RID}", b"no space left\n") == (200, "OK")
    (run,) = runs(world)
    assert (run["status"], run["exit_code"], run["node"]) == ("FAILED", 7, "elsewhere")
    assert world.ask("GET", f"/v1/runs/{run['run_id']}/log")[1] == b"begun\nno space left\n"

    token = tmp_path / "token"
    token.write_text(key)
    environ = {
        "PATH": os.environ["PATH"],
        "SCHEDCTL_URL": address(world, "webhooks"),
        "SCHEDCTL_TOKEN_FILE": str(token),
    }
    words = [*SCHEDCTL, "exec", "nightly", "--", "sh", "-c", "echo 42 rows"]
    assert subprocess.run(words, env=environ, capture_output=True, check=True).stdout == b"42 rows\n"
    assert [one["status"] for one in runs(world)] == ["COMPLETED", "FAILED"]
    assert key not in world.log.read_text()
    status, metrics = world.ask("GET", "/metrics")
    assert (status, key.encode() in metrics) == (200, False)
    assert b'schedctl_job_runs_total{job_name="nightly"' in metrics


def test_a_run_that_tells_no_end_fails_by_itself(make_world: Make) -> None:
    world = make_world(JOBS)
    world.start()
    assert world.ask("POST", "/ping/-/brief/start")[0] == 200
    wait_for(lambda: [one["reason"] for one in runs(world, "brief")] == ["timeout"], 30, "its time is over")
    assert world.stop() == 0
