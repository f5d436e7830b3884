"""What a job's runs are used to, and where its `timeout` or `grace` is far from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduler.core.durations import format_duration, parse_duration
from scheduler.core.model import Cause, Run
from scheduler.core.value_object import value_object
from scheduler.web.present import Shown

FEWEST = 10
"""Completed runs from which on something can be said."""
MOST = 100
"""Of so many of the last ones it is said."""

_NICE = [timedelta(minutes=n) for n in (5, 10, 15, 20, 30, 45)] + [
    timedelta(hours=n) for n in (1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 168, 336)
]
_FAR = 24
"""A limit so many times as long as one that fits is far off: too short ones are a nuisance, too long ones only slow."""


@value_object
class _Lengths:
    """Seconds, ascending; at least FEWEST."""

    all: Sequence[float]

    def share(self, part: float) -> float:
        """The length that this part of them does not exceed (nearest rank)."""
        return self.all[math.ceil(round(part * len(self.all), 6)) - 1]

    @property
    def longest(self) -> float:
        return self.all[-1]


def habits_json(completed: Sequence[Run], definition: Mapping[str, Any]) -> Shown | None:
    """p50, p95 and the longest of the last completed runs, in seconds, and `advice`: keys of jobs.yaml whose value is
    far off, each with the value that fits and the reason. None before FEWEST runs."""
    worked = [(run, _worked(run)) for run in completed]
    took = _lengths([length for _, length in worked if length is not None])
    if took is None:
        return None
    # A run that was tried again worked longer than any of its attempts, which is what `timeout` limits.
    once = _lengths([length for run, length in worked if length is not None and run.attempt == 1])
    done = _lengths(
        [
            _seconds(run.scheduled_for, run.finished_at)
            for run in completed
            if run.finished_at and run.scheduled_for and run.cause in (Cause.SCHEDULE, Cause.API)
        ]
    )
    advice = [_advice("timeout", once, definition, "the longest of {count} runs took {longest}")]
    if definition.get("heartbeat", True):
        words = "the latest of {count} successes came {longest} after its instant"
        advice.append(_advice("grace", done, definition, words))
    return {
        "runs": len(took.all),
        "p50_s": took.share(0.5),
        "p95_s": took.share(0.95),
        "longest_s": took.longest,
        "advice": [one for one in advice if one is not None],
    }


def _advice(key: str, lengths: _Lengths | None, definition: Mapping[str, Any], words: str) -> Shown | None:
    written = definition.get(key)
    if lengths is None or not isinstance(written, str):
        return None
    limit = parse_duration(written)
    fits = _nice(timedelta(seconds=max(3 * lengths.share(0.95), 1.5 * lengths.longest)))
    tight = limit.total_seconds() < 1.2 * lengths.longest
    if fits is None or not (tight or limit > _FAR * fits):
        return None
    longest = format_duration(timedelta(seconds=max(1, round(lengths.longest))))
    return {
        "key": key,
        "now": written,
        "value": format_duration(fits),
        "why": words.format(count=len(lengths.all), longest=longest),
    }


def _nice(length: timedelta) -> timedelta | None:
    """The shortest round one that is long enough."""
    return next((one for one in _NICE if one >= length), None)


def _lengths(seconds: Sequence[float]) -> _Lengths | None:
    return _Lengths(sorted(seconds)) if len(seconds) >= FEWEST else None


def _worked(run: Run) -> float | None:
    """Seconds at work, without the waits between attempts."""
    if run.took is not None:
        return round(run.took, 3)
    return _seconds(run.started_at, run.finished_at) if run.started_at and run.finished_at else None


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, round((end - start).total_seconds(), 3))
