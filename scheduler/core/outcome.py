"""What executors return: how one attempt ended.

`span` None: it was at work from its start until this was heard. When it was does not count in comparisons of what
became of it."""

from __future__ import annotations

from dataclasses import field
from datetime import timedelta

from scheduler.core.model import FailReason, Json
from scheduler.core.value_object import value_object


@value_object
class Span:
    """When an attempt was at work, in seconds of CLOCK_BOOTTIME: told by whoever saw it, however late that is heard.
    `began` None: when its node began it."""

    ended: float
    began: float | None = None


@value_object
class Succeeded:
    """The work is done. `result` is what it reported, if anything."""

    result: Json = None
    exit_code: int | None = None
    left: int = 0
    span: Span | None = field(default=None, compare=False)


@value_object
class Failed:
    """The work is not done. `retryable` False: further attempts cannot help. `not_sooner` is a floor for the wait."""

    reason: FailReason
    error: str
    retryable: bool = True
    not_sooner: timedelta | None = None
    exit_code: int | None = None
    signal: int | None = None
    left: int = 0
    span: Span | None = field(default=None, compare=False)


@value_object
class Snoozed:
    """Not now: try again after `delay`; costs no retry."""

    delay: timedelta
    error: str = ""
    span: Span | None = field(default=None, compare=False)


@value_object
class Canceled:
    """Ended because somebody asked for it."""

    why: str
    exit_code: int | None = None
    signal: int | None = None
    left: int = 0
    span: Span | None = field(default=None, compare=False)


@value_object
class GivenBack:
    """Ended (or never started) by a node that is leaving: `started` False gives the attempt back untouched,
    True counts it as lost without using up one of the lost attempts."""

    started: bool
    span: Span | None = field(default=None, compare=False)


Outcome = Succeeded | Failed | Snoozed | Canceled | GivenBack
