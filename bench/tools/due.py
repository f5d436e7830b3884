"""Choosing an instant that is far enough away for a daemon to be ready before it."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.measurement import Figures


class NotReady(Exception):
    """The instant came first."""


def with_due(lead: float, measure: Callable[[float], Figures]) -> Figures:
    """`measure(due)` with a full second about `lead` seconds from now. If that was too near it is tried again with
    twice and four times as much."""
    for factor in (1, 2):
        try:
            return measure(float(int(time.time() + lead * factor) + 1))
        except NotReady:
            continue
    return measure(float(int(time.time() + lead * 4) + 1))


def must_be_before(instant: float) -> None:
    """Raises NotReady if that instant has passed."""
    if time.time() > instant:
        raise NotReady("the daemon was not ready before the instant")
