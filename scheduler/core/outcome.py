"""What executors return: how one attempt ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from scheduler.core.model import FailReason, Json


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The work is done. `result` is what it reported, if anything."""

    result: Json = None
    exit_code: int | None = None
    left: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """The work is not done. `retryable` False: further attempts cannot help. `not_sooner` is a floor for the wait."""

    reason: FailReason
    error: str
    retryable: bool = True
    not_sooner: timedelta | None = None
    exit_code: int | None = None
    signal: int | None = None
    left: int = 0


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Not now: try again after `delay`; costs no retry."""

    delay: timedelta
    error: str = ""


@dataclass(frozen=True, slots=True)
class Canceled:
    """Ended because somebody asked for it."""

    why: str
    exit_code: int | None = None
    signal: int | None = None
    left: int = 0


@dataclass(frozen=True, slots=True)
class GivenBack:
    """Ended (or never started) by a node that is leaving: `started` False gives the attempt back untouched,
    True counts it as lost without using up one of the lost attempts."""

    started: bool


Outcome = Succeeded | Failed | Snoozed | Canceled | GivenBack
