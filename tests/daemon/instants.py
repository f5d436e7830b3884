"""A job that writes down each instant for which it runs: what a ledger that moved or was restored must not repeat."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.crash.world import World

JOBS = """
defaults: {{timezone: UTC}}
jobs:
  every-second:
    schedule: "* * * * * *"
    catch_up: all
    command: 'echo $SCHED_SCHEDULED_FOR >> {file}'
"""


def started(file: Path) -> Counter[str]:
    return Counter(file.read_text().splitlines() if file.exists() else [])


def check_and_stop(world: World, file: Path) -> None:
    """No instant ran twice, and each has exactly one entry, by the daemon's audit and by the rows."""
    audit = json.loads(world.get("/v1/audit")[1])
    assert audit["clean"], audit
    assert world.stop() == 0
    assert max(started(file).values()) == 1
    runs, skips = world.read_ledger()
    covered = Counter(run.instant for run in runs if run.instant is not None)
    covered.update(at for skip in skips for at in range(skip.first, skip.last + 1))
    assert max(covered.values()) == 1
    assert sorted(covered) == list(range(min(covered), max(covered) + 1))
