"""The canary's last steps here: its executor, and who notices that it has fallen silent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar

from scheduler.core.canary import CANARY, EVERY, GRACE, KIND, CanaryFacts
from scheduler.core.durations import format_duration
from scheduler.core.execution import Clock, Launch
from scheduler.core.look import Look
from scheduler.core.outcome import Outcome, Succeeded
from scheduler.core.ports import Store
from scheduler.core.queries import JobView, Readable
from scheduler.core.remark import Remark

LOOK = 10.0
"""Seconds between two looks."""
SILENCE = (EVERY + GRACE).total_seconds()


class CanaryExecutor:
    """Succeeds at once, in the daemon itself: a process a minute would prove no more than the pings of the supervisor
    do. `finish` closes the files of an attempt, by run and number."""

    kind: ClassVar[str] = KIND
    own_files: ClassVar[bool] = False

    def __init__(self, finish: Callable[[str, int], object]) -> None:
        self._finish = finish

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        self._finish(launch.run.id, launch.attempt)
        done(Succeeded())

    def end(self, run: str, why: str) -> None:
        """It is over."""

    def tick(self, now: float) -> int:
        return 0

    def close(self) -> None:
        """It holds nothing."""


class Canary:
    """`tick` looks into the ledger; the rest may be asked from any thread and touches nothing. Time is counted by the
    clock that never steps, from when a success was first seen here.

    A node whose slots were all taken a moment ago says nothing of the canary's silence: it may wait for a slot like
    everybody else, and what waits for long is told by the queues. Neither does one that is leaving."""

    def __init__(
        self,
        store: Store,
        readable: Readable,
        clock: Clock,
        full: Callable[[], bool],
        leaving: Callable[[], bool],
    ) -> None:
        self._store = store
        self._readable = readable
        self._clock = clock
        self._full = full
        self._leaving = leaving
        self._looked_at: float | None = None
        self._mark: str | None = None
        self._from = clock.monotonic()
        self._full_at: float | None = None
        self._paused = False
        self._success: datetime | None = None
        self._took: float | None = None
        self._why = "jobs may not run either"

    def rests(self, look: Look) -> bool:
        """No new success is to be expected yet, or nothing was written since the last look; and it is not late."""
        monotonic = self._clock.monotonic()
        if self._full():
            self._full_at = monotonic
        if self._looked_at is None or self.facts(look.now).late:
            return False
        fresh = self._success is not None and monotonic - self._from < EVERY.total_seconds()
        if fresh or look.mark == self._mark or monotonic - self._looked_at < LOOK:
            return True
        self._mark = look.mark
        return False

    def tick(self, now: datetime) -> int:
        """Looks every few seconds; 1 if there is a new success."""
        monotonic = self._clock.monotonic()
        if self._looked_at is None:
            self._from = monotonic  # A start may have waited for its database for long.
        if self._full():
            self._full_at = monotonic
        if self._looked_at is not None and monotonic - self._looked_at < LOOK:
            return 0
        self._looked_at = monotonic
        with self._store.read() as tx:
            state = tx.jobs.states([CANARY]).get(CANARY)
            self._paused = any(pause.start <= now for pause in tx.jobs.pauses([CANARY], now))
        success = None if state is None else state.last_success_at
        if state is None or success is None or success == self._success:
            if self.facts(now).late:
                self._why = self._find_out(now)
            return 0
        first, self._success = self._success is None, success
        instant = state.settled_until
        self._took = None if instant is None else max(0.0, (success - instant).total_seconds())
        if first and now - success > EVERY:
            return 0  # Of the daemon before this one: what is expected is expected from our start on.
        self._from = monotonic
        return 1

    def _find_out(self, now: datetime) -> str:
        with self._readable.queries() as queries:
            return _where(next(iter(queries.jobs(now, [CANARY])), None), now)

    def facts(self, now: datetime) -> CanaryFacts:
        """What is known of it."""
        left = SILENCE - (self._clock.monotonic() - self._from)
        expected = not self._paused and not self._leaving() and not self._was_full()
        deadline = now + timedelta(seconds=left) if expected else None
        return CanaryFacts(self._success, self._took, deadline, expected and left < 0)

    def remarks(self, now: datetime) -> list[Remark]:
        """One, if it is late."""
        facts = self.facts(now)
        if not facts.late:
            return []
        what = f"the canary has not come through for {_rounded(self._clock.monotonic() - self._from)}: {self._why}"
        return [Remark("canary", what, facts.deadline_at, f"schedctl describe {CANARY}")]

    def _was_full(self) -> bool:
        return self._full_at is not None and self._clock.monotonic() - self._full_at < SILENCE


def _where(view: JobView | None, now: datetime) -> str:
    """At which step it hangs."""
    if view is None or view.state.removed_at is not None:
        return "it is not in the ledger; restart the daemon"
    if view.state.alarm is not None or not view.state.enabled:
        return f"it was disabled: {view.state.alarm or 'by hand'}; to enable it: schedctl reload"
    if view.running:
        return "its run was started and is not settled"
    if view.waiting:
        return "its run waits and nobody claims it"
    if view.state.next_due_at is not None and view.state.next_due_at < now - EVERY:
        return "it is due and nobody plans it"
    if view.last_failure is not None:
        return f"its runs fail: {view.last_failure.error or view.last_failure.reason}"
    return "jobs may not run either"


def _rounded(seconds: float) -> str:
    return format_duration(timedelta(seconds=round(seconds)))
