"""A daemon that has nothing to do says next to nothing to its database, however many loops it has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.waiting import wait_for
from tests.databases import Place

LOOKS = 24
SETTLED = 8
"""Looks after which a daemon that has started is idle."""


@pytest.fixture
def said(place: Place, tmp_path: Path) -> Iterator[Path]:
    """The file that a daemon with jobs for next year writes its statements into."""
    jobs = "".join(f"  job-{n:03d}: {{schedule: '0 0 29 2 *', command: ['true']}}\n" for n in range(200))
    config, file = tmp_path / "jobs.yaml", tmp_path / "statements"
    config.write_text(f"defaults: {{timezone: UTC, heartbeat: false}}\njobs:\n{jobs}")
    file.touch()
    own = {
        "SCHEDULER_CONFIG": str(config),
        "SCHEDULER_STATE_DIR": str(place.state_dir),
        "SCHEDULER_DATABASE_URL": place.url,
        "SCHEDULER_LISTEN": "127.0.0.1:0",
    }
    with (tmp_path / "log").open("w") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "tests.idle.counting_daemon", str(file)],
            env=os.environ | own,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    yield file
    daemon.terminate()
    daemon.wait(30)


def looks(file: Path) -> list[list[str]]:
    """What was said after each look and before the next one."""
    found: list[list[str]] = []
    for line in file.read_text().splitlines():
        if line == "look":
            found.append([])
        elif found:
            found[-1].append(line)
    return found[SETTLED:-1]


def test_an_idle_node_looks_once_a_second(place: Place, said: Path) -> None:
    """On SQLite not even that: it asks whether anybody has written since."""
    wait_for(lambda: len(looks(said)) >= LOOKS, 60.0, "it looks")
    found = looks(said)
    most = {"sqlite": 0, "postgresql": 1}[place.kind]
    # Beats, the canary and what is done every few seconds fall into some of them.
    usual = sorted(len(one) for one in found)[len(found) * 2 // 3]
    assert usual <= most, Counter(statement[:80] for one in found for statement in one).most_common(8)
