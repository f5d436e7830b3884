"""Turns of the planner: when it last planned all that was owed, and what kept it from doing so again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scheduler.core.durations import format_duration
from scheduler.core.execution import Clock
from scheduler.core.hindrances import NOT_PLANNED
from scheduler.core.job import Job
from scheduler.core.model import Skip, SkipReason
from scheduler.core.policy import Plan, plan
from scheduler.core.requests import Due
from scheduler.core.value_object import value_object

LEAST = timedelta(seconds=3)
"""A planner that turns every second is not worth a word about a shorter gap."""
SET = 1.0
"""Seconds by which clocks that run beside each other must part before one of them was set, or the machine slept."""


@value_object
class Obstacle:
    """What turns fail of, and since when by the monotonic clock."""

    reason: str
    since: float


@value_object
class Turn:
    """The beginning of a turn: by the clock of planning, and by those that never step."""

    now: datetime
    monotonic: float
    boottime: float


class Turns:
    """`obstacle` says what keeps turns from being carried out at present, if something does."""

    def __init__(self, clock: Clock, obstacle: Callable[[], Obstacle | None]) -> None:
        self._clock = clock
        self._obstacle = obstacle
        self._begun: Turn | None = None
        self._last: Turn | None = None
        self._failed: Obstacle | None = None

    def begin(self, now: datetime) -> None:
        self._begun = Turn(now, self._clock.monotonic(), self._clock.boottime())

    def end(self) -> None:
        """All that was owed at the beginning of this turn has been planned."""
        self._last = self._begun
        self._failed = None

    def fail(self, reason: str) -> None:
        """This turn planned nothing, though something may be owed."""
        self._failed = self._failed or Obstacle(reason, self._clock.monotonic())

    def judge(self, job: Job, due: Due, now: datetime) -> Plan:
        """core.policy.plan, explained, for whoever judges outside of a turn: from any thread."""
        return self.explain(plan(job, due, now), Turn(now, self._clock.monotonic(), self._clock.boottime()))

    def explain(self, plan: Plan, begun: Turn | None = None) -> Plan:
        """The same plan; what it leaves out as missed, and was due since the last turn, says why nobody planned it in
        time. Nothing is said of what was due before the first turn: then there was no daemon, or another one. `begun`:
        when it was made, if not in the present turn."""
        last, begun = self._last, begun or self._begun
        if last is None or begun is None or begun.now - last.now < LEAST:
            return plan
        why = f"{NOT_PLANNED} {_span(last.now, begun.now)}: {self._why(last, begun)}"
        return replace(
            plan, entries=tuple(_told(one, why, last) if isinstance(one, Skip) else one for one in plan.entries)
        )

    def _why(self, last: Turn, begun: Turn) -> str:
        wall = (begun.now - last.now).total_seconds()
        passed = begun.boottime - last.boottime
        awake = begun.monotonic - last.monotonic
        if wall - passed > max(SET, wall / 2):
            return f"the clock was set forward by {format_duration(timedelta(seconds=round(wall - passed)))}"
        if passed - awake > max(SET, wall / 2):
            return "the machine was suspended"
        obstacle = self._failed or self._obstacle()
        if obstacle is not None and obstacle.since - last.monotonic <= awake / 2:
            return obstacle.reason
        return "the daemon was stopped, or too busy to turn"


def _told(skip: Skip, why: str, last: Turn) -> Skip:
    if skip.reason is not SkipReason.MISSED or skip.last <= last.now:
        return skip
    return replace(skip, detail=f"{skip.detail}; {why}" if skip.detail else why)


def _span(start: datetime, end: datetime) -> str:
    """`19:03:10 to 19:05:00 UTC`, with the days if there are two."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    form = "%H:%M:%S" if start.date() == end.date() else "%Y-%m-%d %H:%M:%S"
    return f"{start:{form}} to {end:{form}} UTC"
