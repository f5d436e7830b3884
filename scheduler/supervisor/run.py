"""One run as the supervisor sees it, and what it says about it to the daemon."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from scheduler.supervisor import linux
from scheduler.supervisor.cgroup import Cgroup

FIRST_PAUSE = 0.01  # seconds between the first two rounds of SIGKILL


@dataclass(slots=True, eq=False)
class Run:
    """`kill_at` is monotonic, `began` and `ended` are of CLOCK_BOOTTIME; `left` are the processes besides the main one
    that had to be signalled."""

    run: str
    attempt: int
    node: str
    kill_after: float
    keep: bool
    slot: int
    cgroup: Cgroup | None
    pid: int
    tell: int
    began: float
    failure: tuple[str, int] | None = None
    status: int | None = None
    usage: dict[str, float] = field(default_factory=dict)
    ended_at: float = 0.0
    ended: float = 0.0
    why: str | None = None
    termed: bool = False
    kill_at: float | None = None
    pause: float = FIRST_PAUSE
    orphans: set[int] = field(default_factory=set)
    left: set[tuple[int, int]] = field(default_factory=set)


def failed(order: dict[str, Any], stage: str, number: int, what: str = "") -> dict[str, Any]:
    """The message that no child came of a start; `errno` 0 goes with a reason in `what`."""
    return {
        "type": "failed",
        "run": order.get("run"),
        "attempt": order.get("attempt"),
        "stage": stage,
        "errno": number,
        "what": what or os.strerror(number),
    }


def exited(run: Run, status: int | None) -> dict[str, Any]:
    """The message that a run is over, with all it left behind."""
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {
        "type": "exited",
        "run": run.run,
        "attempt": run.attempt,
        "node": run.node,
        "code": code if code is not None and code >= 0 else None,
        "signal": -code if code is not None and code < 0 else None,
        "why": run.why,
        "left": len(run.left),
        "usage": run.usage,
        "ended_at": run.ended_at,
        "began": run.began,
        "ended": run.ended or linux.boottime(),
    }
