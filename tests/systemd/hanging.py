"""`python -m tests.systemd.hanging FILE`: a daemon whose planner does not come back while FILE exists."""

from __future__ import annotations

import sys
import threading
from datetime import datetime
from pathlib import Path

from scheduler.daemon import main
from scheduler.engine.planner import Planner

_tick = Planner.tick


def _hang(self: Planner, now: datetime) -> int:
    while Path(sys.argv[1]).exists():
        threading.Event().wait(0.05)
    return _tick(self, now)


if __name__ == "__main__":
    Planner.tick = _hang  # type: ignore[method-assign]
    Planner.rests = lambda self, look: False  # type: ignore[method-assign]
    sys.exit(main([]))
