"""The keeper: what has to be put in order again and again, whoever caused it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from scheduler.core.execution import Attempts, Bus, Clock
from scheduler.core.look import Look
from scheduler.core.ports import Store
from scheduler.core.requests import Report
from scheduler.engine.in_force import InForce
from scheduler.engine.orphans import close_orphans
from scheduler.engine.set_back import SetBack, further_back

log = structlog.get_logger("engine")

STEP = timedelta(seconds=1)
"""A clock that moves this much against the one that never steps, between two ticks, was set."""
PROMPT = timedelta(milliseconds=500)
"""A time that took longer to come says too little about the moment at which it is compared."""
REPORT_INTERVAL = 2.0
"""Seconds between two looks at what running work reports."""
STEPS = "clock_steps"
"""Counts the steps of the database's clock that were dealt with, over all nodes."""
SET_BACK = "clock_set_back"
"""Up to which instant planning had come when the clock was set back (SetBack)."""


class Keeper:
    """`follow` loads a newer generation if there is one."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        bus: Bus,
        clock: Clock,
        attempts: Attempts,
        follow: Callable[[datetime], None],
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._clock = clock
        self._attempts = attempts
        self._follow = follow
        self.set_back: SetBack | None = None
        """The clock of planning was set back, and what was planned before that is still to come."""
        self._last: tuple[datetime, float, str | None] | None = None
        self._reported = clock.monotonic()
        self._unsent: dict[tuple[str, int], Report] = {}

    def tick(self, now: datetime) -> int:
        """Follows the configuration in force, notices clock steps, closes lost runs, ships reports."""
        self._follow(now)
        self._notice_step(now)
        # What follows the loss of a run is for those to say who know the configuration in force.
        closed = close_orphans(self._store, self._in_force, self._bus, now) if self._in_force.behind is None else 0
        self._ship_reports()
        return closed

    def rests(self, look: Look) -> bool:
        """The configuration in force is loaded, no clock was set, and no run is lost. Ships reports, if there are any:
        in the database nobody sees that there are."""
        if look.orphans or look.generation > self._in_force.current.generation or self._last is None:
            return False
        steady, steps = self._clock.boottime(), look.values.get(STEPS)
        if steps != self._last[2] or abs(self._step(look.now, steady)) > STEP:
            return False
        self._remember(look.now, steady, steps, SetBack.read(look.values.get(SET_BACK)))
        self._ship_reports()
        return True

    def _notice_step(self, now: datetime) -> None:
        """Everything stored in clock time moves with a step of the database's clock, once over all nodes: the node
        whose compare-and-set on the number of steps succeeds does it. A machine that slept was not set: its wall clock
        is compared with the clock that counts sleep."""
        steady = self._clock.boottime()
        if self._last is None or abs(self._step(now, steady)) > STEP:
            # What looks like a step may be time for which this process was stopped since it was told `now`.
            measured = self._measured()
            if measured is None:
                return
            now, steady = measured
        with self._store.read() as tx:
            steps = tx.generations.value(STEPS)
            back = SetBack.read(tx.generations.value(SET_BACK))
            nodes = tx.nodes.all() if self._last is None else []
        # A node that beat later than now: the clock was set back while no daemon was there to see it.
        latest = max((node.beat_at for node in nodes if node.beat_at is not None), default=now)
        if latest - now > STEP and (back is None or back.until < latest):
            back = further_back(back, latest, now)
            with self._store.begin() as tx:
                tx.generations.set_value(SET_BACK, back.written())
            log.warning("clock_behind_ledger", seconds=round((latest - now).total_seconds(), 3))
        if self._last is not None:
            step, known = self._step(now, steady), self._last[2]
            if abs(step) > STEP and steps == known:
                with self._store.begin() as tx:
                    if tx.generations.swap_value(STEPS, known, str(int(known or "0") + 1)):
                        tx.runs.shift_clock(step, now)
                        steps = str(int(known or "0") + 1)
                        if step < timedelta(0):
                            back = further_back(back, now - step, now)
                            tx.generations.set_value(SET_BACK, back.written())
                log.warning("clock_stepped", seconds=round(step.total_seconds(), 3))
                self._bus.publish("clock.stepped", seconds=step.total_seconds())
        self._remember(now, steady, steps, back)

    def _step(self, now: datetime, steady: float) -> timedelta:
        """By how much the clock of planning was set since the last look, if it shows `now` at `steady`."""
        assert self._last is not None
        before, then, _ = self._last
        return (now - before) - timedelta(seconds=steady - then)

    def _measured(self) -> tuple[datetime, float] | None:
        """Both clocks at one moment; None if they could not be read together, which the next tick tries again."""
        before = self._clock.boottime()
        now = self._store.now()
        return (now, before) if self._clock.boottime() - before <= PROMPT.total_seconds() else None

    def _remember(self, now: datetime, steady: float, steps: str | None, back: SetBack | None) -> None:
        self._last = (now, steady, steps)
        self.set_back = back if back is not None and now < back.until else None

    def _ship_reports(self) -> None:
        if self._clock.monotonic() - self._reported < REPORT_INTERVAL:
            return
        self._reported = self._clock.monotonic()
        for report in self._attempts.reports():
            key = (report.run, report.fence)
            self._unsent[key] = _merged(self._unsent[key], report) if key in self._unsent else report
        if self._unsent:
            with self._store.begin() as tx:
                tx.runs.report(list(self._unsent.values()))
            self._unsent.clear()


def _merged(older: Report, newer: Report) -> Report:
    """What both say, the newer one wins."""
    said = {name: value for name in _SAID if (value := getattr(newer, name)) is not None}
    return replace(older, **said)


_SAID = ("progress", "message", "result", "checkpoint")
