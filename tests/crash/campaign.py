"""A campaign: load, faults at random moments, a drain, and the verdict."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.crash import load
from tests.crash.checker import History, Verdict, check
from tests.crash.nemesis import FAULTS
from tests.crash.world import World


def campaign(
    folder: Path,
    *,
    faults: Sequence[str],
    seed: int,
    jobs: int = 200,
    quiet: tuple[float, float] = (0.5, 4.0),
    afterwards: float = 40.0,
    retry: bool = True,
    url: str = "",
    **settings: str,
) -> tuple[Verdict, History]:
    """Runs `faults` one after the other with random pauses of `quiet` seconds between, goes on for `afterwards` seconds
    (a run that was lost twice waits 30 s, and its job must be seen to go on), drains, and checks. `retry`: some jobs
    repeat lost attempts."""
    chance = random.Random(seed)
    world = World(folder, uuid.uuid4().hex, url, **settings)
    made = load.jobs(jobs, retry=retry)
    load.write(world.config, world.stamps, made, world.mark)
    outages: list[tuple[float, float]] = []
    try:
        begun = time.time()
        world.start()
        outages.append((begun, time.time()))
        for fault in faults:
            threading.Event().wait(chance.uniform(*quiet))
            outages.append(FAULTS[fault](world, chance))
        threading.Event().wait(afterwards)
        until = _quieten(world, made)
        unaccounted = _audit(world, begun)
        assert world.stop() == 0, world.tail()
    finally:
        if world.daemon is not None and world.daemon.poll() is None:
            world.kill()
    runs, skips = world.read_ledger()
    instants = [run.instant for run in runs if run.instant is not None] + [skip.first for skip in skips]
    history = History(
        overlaps={job.name: job.overlap for job in made},
        # Every job's first instant is the first one after the first load.
        since=min(instants) - 1,
        until=until,
        outages=outages,
        stamps=world.read_stamps(),
        runs=runs,
        skips=skips,
        survivors=world.survivors(),
    )
    verdict = check(history)
    verdict.problems.extend(unaccounted)
    (folder / "verdict.json").write_text(
        json.dumps({"figures": verdict.figures, "outages": outages, "problems": verdict.problems}, indent=1)
    )
    return verdict, history


def _audit(world: World, begun: float) -> list[str]:
    """What the daemon's own audit finds missing; it leaves the last minute to the planner."""
    since = datetime.fromtimestamp(begun - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status, body = world.get(f"/v1/audit?since={since}")
    assert status == 200, body
    return [f"audit: {one['job']} is not clean" for one in json.loads(body)["jobs"] if not one["clean"]]


def _quieten(world: World, made: list[load.LoadJob]) -> int:
    """Gives the jobs a schedule that brings nothing more and waits until no run is unfinished; the last second of the
    old schedule."""
    load.write(world.config, world.stamps, made, world.mark, load.QUIET)
    before = time.time()
    status, body = world.ask("POST", "/v1/reload", {})
    assert status == 200, body
    patience = time.monotonic() + 120
    while any(run.unfinished for run in world.read_ledger()[0]):
        assert time.monotonic() < patience, "runs are unfinished two minutes after the last occurrence"
        threading.Event().wait(0.5)
    return int(before)
