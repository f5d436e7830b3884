"""`python -m tests.rings.quick_daemon FOLDER`: a daemon whose rings turn in seconds instead of minutes.

While FOLDER holds a file `planner`, `worker` or `keeper`, that loop does not come back from its tick; while it holds
`stopped`, the planner comes back without having planned anything.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scheduler import files, readiness
from scheduler.config import canary as bird
from scheduler.core.schedule import Schedule
from scheduler.daemon import main
from scheduler.engine import canary, daemon_ping, pinger, targets
from scheduler.engine.keeper import Keeper
from scheduler.engine.planner import Planner
from scheduler.engine.worker import Worker


def quicken() -> None:
    """A canary every second that is missed after four, a ping every second, a loop that is stale after three."""
    every_second = Schedule(("* * * * * *",), "UTC", "cron", "_canary")
    quick = replace(bird.canary(), schedule=every_second)
    with_canary = bird.with_canary

    def with_quick_canary(configuration: Any) -> Any:
        made = with_canary(configuration)
        return replace(made, jobs={**made.jobs, quick.name: quick})

    setattr(files, "with_canary", with_quick_canary)  # noqa: B010 -- what it imported
    canary.EVERY, canary.LOOK, canary.SILENCE = timedelta(seconds=1), 0.2, 4.0
    daemon_ping.EVERY, daemon_ping.AGAIN = 1.0, 0.3
    readiness.STALE = 3.0
    pinger.LOOK = 0.5
    targets.TOLD_AFTER = targets.TOLD_AFTER / 90


def hang(loop: type[Any], flag: Path) -> None:
    tick: Callable[[Any, datetime], int] = loop.tick

    def hanging(self: Any, now: datetime) -> int:
        while flag.exists():
            threading.Event().wait(0.02)
        return tick(self, now)

    loop.tick = hanging
    loop.rests = _never


def stop(flag: Path) -> None:
    tick = Planner.tick
    Planner.tick = lambda self, now: 0 if flag.exists() else tick(self, now)  # type: ignore[method-assign]
    Planner.rests = _never  # type: ignore[method-assign, assignment]


def _never(_self: Any, _look: Any) -> bool:
    """It ticks at every turn, so that what is planted is met."""
    return False


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    quicken()
    for name, loop in (("planner", Planner), ("worker", Worker), ("keeper", Keeper)):
        hang(loop, folder / name)
    stop(folder / "stopped")
    sys.exit(main([]))
