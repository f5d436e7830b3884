"""What `schedctl init` writes, and the daemon that is started with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for


def test_a_first_file_in_an_empty_folder_runs_without_a_warning(make_world: Make, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = os.environ | {"TZ": "Europe/Paris"}
    code = "from scheduler.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", code, "init"], cwd=folder, env=environment, check=True, timeout=60)
    assert sorted(path.name for path in folder.iterdir()) == ["jobs.schema.json", "jobs.yaml"]
    world = make_world("", SCHEDULER_CONFIG=str(folder / "jobs.yaml"))
    world.start()
    status, body = world.ask("POST", "/v1/jobs/hello/runs", {})
    assert status == 202, body
    run = json.loads(body)["run_id"]
    wait_for(lambda: b"COMPLETED" in world.get(f"/v1/runs/{run}")[1], 30, "its job completes")
    assert world.stop() == 0
    levels = {json.loads(line)["level"] for line in world.log.read_text().splitlines()}
    assert levels == {"info"}, world.tail()
