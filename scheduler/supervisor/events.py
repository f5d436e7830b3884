"""What the daemon hears from the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from scheduler.core.value_object import value_object


@value_object
class SpawnFailed:
    """No program was executed. `stage` is one of `refused fork limits user cwd exec`, `errno` 0 for refused.

    `diagnose.explain` makes one sentence of it.
    """

    run: str
    attempt: int
    stage: str
    errno: int
    what: str


@value_object
class Exited:
    """The run is over and nothing of it is left, unless it was to be kept.

    One of `code` and `signal` is set; neither, when the run was ended before its program was executed.
    `why` is the reason given to `end`, or "lost", when the main process exited after we had signalled it:
    the exit then means that, whatever its code. `left` counts the processes besides the main one that had
    to be ended. `usage` has `user` and `system` seconds and `max_rss` bytes. `began` and `ended` are the main
    process's start and end in seconds of CLOCK_BOOTTIME, `ended_at` is its end in seconds since 1970, for a reader
    after a reboot.
    """

    run: str
    attempt: int
    node: str
    code: int | None
    signal: int | None
    why: str | None
    left: int
    usage: Mapping[str, float] = field(default_factory=dict)
    ended_at: float = 0.0
    began: float = 0.0
    ended: float = 0.0


@value_object
class SupervisorGone:
    """The supervisor has ended and been reaped; call `orphans.end_orphans` before anything counts as lost."""

    pid: int
    reason: str


Event = SpawnFailed | Exited | SupervisorGone
