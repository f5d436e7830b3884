"""Runs with a payload are never skipped, dropped or run above the limit of their queue, whatever happens meanwhile."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.world import World
from tests.daemon.conftest import Make
from tests.daemon.waiting import wait_for
from tests.long import LONG

pytestmark = [pytest.mark.load, pytest.mark.timeout(240), pytest.mark.xdist_group("load")]

COUNT = 1000 if LONG else 200
"""Runs asked for at once."""
PAUSE = 10 if LONG else 1.5
"""Seconds of a pause."""
JOBS = """
defaults: {{timezone: UTC}}
queues: {{work: {{concurrency: {limit}}}}}
jobs:
  work:
    queue: work
    env: {{FILE: "{file}"}}
    command: >
      read u _ < /proc/uptime; echo "S $u" >> $FILE; sleep {seconds};
      read u _ < /proc/uptime; echo "E $u" >> $FILE
{more}
"""


def jobs(file: Path, *, limit: int = 50, seconds: float = 0.5, more: str = "") -> str:
    return JOBS.format(limit=limit, file=file, seconds=seconds, more=more)


def flood(world: World, count: int, clients: int = 8) -> float:
    """`count` runs over `clients` connections; the seconds it took until all were accepted."""

    def send(numbers: range) -> None:
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.connect(str(world.state / "schedctl.sock"))
        for number in numbers:
            body = json.dumps({"payload": {"number": number}})
            connection.request("POST", "/v1/jobs/work/runs", body, {"content-type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status == 202:
                accepted.append(json.loads(answer)["run_id"])
            else:
                refused.append(answer)
        connection.close()

    accepted: list[str] = []
    refused: list[bytes] = []
    begun = time.monotonic()
    threads = [threading.Thread(target=send, args=(range(n, count, clients),)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == []
    assert len(set(accepted)) == count
    return time.monotonic() - begun


def statuses(world: World) -> Counter[str]:
    return Counter(run.status for run in world.read_ledger()[0])


def most_at_once(file: Path) -> int:
    """How many children lived at one time, by their own stamps."""
    events = []
    for line in file.read_text().splitlines():
        kind, at = line.split()
        # An end and a start within one tick of the clock (10 ms) may have happened in either order.
        events.append((float(at), 0 if kind == "E" else 1))
    most = living = 0
    for _, kind in sorted(events):
        living += 1 if kind else -1
        most = max(most, living)
    return most


def finish(world: World) -> None:
    wait_for(lambda: statuses(world)["COMPLETED"] == COUNT, 150, f"all {COUNT} runs COMPLETED", step=0.1)
    assert statuses(world) == {"COMPLETED": COUNT}
    assert world.read_ledger()[1] == []


def test_all_complete_and_never_more_than_the_limit_at_once(make_world: Make, tmp_path: Path) -> None:
    world = make_world(jobs(tmp_path / "file"))
    world.start()
    flood(world, COUNT)
    finish(world)
    assert most_at_once(tmp_path / "file") <= 50


def test_while_paused_they_wait(make_world: Make, tmp_path: Path) -> None:
    world = make_world(jobs(tmp_path / "file"))
    world.start()
    flood(world, COUNT // 2)
    assert world.ask("POST", "/v1/jobs/work/pause", {"reason": "test"})[0] == 200
    flood(world, COUNT // 2)
    wait_for(lambda: statuses(world)["RUNNING"] == 0, 30, "what ran has ended")
    before = statuses(world)["COMPLETED"]
    threading.Event().wait(PAUSE)
    assert statuses(world)["COMPLETED"] == before < COUNT
    assert world.ask("POST", "/v1/jobs/work/resume", {})[0] == 200
    finish(world)


def test_across_reloads(make_world: Make, tmp_path: Path) -> None:
    def text(description: str) -> str:
        return jobs(tmp_path / "file", more=f"    description: {description}\n")

    world = make_world(text("before"))
    world.start()
    thread = threading.Thread(target=flood, args=(world, COUNT))
    thread.start()
    for number in range(5):
        world.config.write_text(text(f"edit {number}"))
        assert world.ask("POST", "/v1/reload", {})[0] == 200
        threading.Event().wait(0.5)
    thread.join()
    finish(world)


def test_a_limit_of_four_is_never_five(make_world: Make, tmp_path: Path) -> None:
    world = make_world(jobs(tmp_path / "file", limit=4, seconds=0.2))
    world.start()
    count = 60 if LONG else 32
    flood(world, count)
    wait_for(lambda: statuses(world)["COMPLETED"] == count, 60, "all runs COMPLETED", step=0.1)
    assert most_at_once(tmp_path / "file") == 4
