"""Drain: how a node leaves. It takes nothing more, waits for what it holds, ends the rest, and is marked stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog

from scheduler.core.counted import counted
from scheduler.core.durations import format_duration
from scheduler.core.errors import Unavailable
from scheduler.core.execution import Bus, Clock
from scheduler.core.ids import short
from scheduler.core.model import Run
from scheduler.core.ports import Store
from scheduler.engine.worker import Worker

log = structlog.get_logger("engine")

ENDING = timedelta(minutes=2)
"""How long runs that were told to end may still take before the daemon goes anyway; a longer `kill_after` is cut."""

SETTLING = 10.0
"""Seconds for which a node that runs nothing any more waits for the database to take what its runs came to."""


class Drain:
    """Asked for by `begin`; a second `begin` ends the wait. `over` is true when nothing is held any more, or when all
    that is left is to write and nothing takes it."""

    def __init__(
        self, store: Store, worker: Worker, bus: Bus, clock: Clock, node: Callable[[], str], timeout: timedelta
    ) -> None:
        self._store = store
        self._worker = worker
        self._bus = bus
        self._clock = clock
        self._node = node
        self._timeout = timeout
        self._until: float | None = None
        self.since: datetime | None = None
        """When it began, by this machine's clock."""
        self._ended_at: float | None = None
        self._left = 0
        self._quiet_since = 0.0
        self.unwritten: str | None = None
        """What could not be written when this node left; None if everything was."""

    @property
    def begun(self) -> bool:
        return self._until is not None

    def begin(self) -> None:
        """From now on nothing further is planned or claimed here."""
        if self._until is not None:
            log.warning("drain_cut_short")
            self._until = self._clock.monotonic()
            return
        self._worker.accepting = False
        self.since = self._clock.now()
        self._until = self._clock.monotonic() + self._timeout.total_seconds()
        running = self._worker.running()
        log.info(
            "drain_started",
            waiting_for=_named(running),
            unwritten=len(self._worker.live()) - len(running),
            at_most=str(self._timeout),
        )
        self._mark("stopping")

    def words(self) -> str:
        """What it does and for how long yet, for people."""
        words = "it plans and starts nothing more"
        running, held = len(self._worker.running()), len(self._worker.live())
        if self._until is not None and running:
            left = timedelta(seconds=max(0, round(self._until - self._clock.monotonic())))
            words += f", and waits for {counted(running, 'run')}, at most for another {format_duration(left)}"
        if held > running:
            words += f"; how {counted(held - running, 'run')} ended is yet to be written down"
        return words

    def over(self) -> bool:
        """Called again and again by the main thread once the drain has begun."""
        if self._until is None:
            return False
        if self._worker.idle:
            return True
        now = self._clock.monotonic()
        if self._nothing_is_written(now):
            return True
        if self._ended_at is None and now >= self._until:
            running = self._worker.running()
            if running:
                log.warning("drain_ends_runs", runs=_named(running))
            self._worker.end_all("drain")
            self._ended_at = now
        return self._ended_at is not None and now - self._ended_at > ENDING.total_seconds()

    def _nothing_is_written(self, now: float) -> bool:
        """Nothing runs any more, and for SETTLING seconds nothing of what is left to write could be written."""
        left = len(self._worker.live())
        if not self._worker.over or left != self._left:
            self._left, self._quiet_since = left, now
        return now - self._quiet_since >= SETTLING

    def finish(self) -> None:
        """What was still held is closed by whoever comes next."""
        why = self._mark("stopped")
        held = self._worker.live()
        if why is None and not held:
            log.info("drain_finished")
        else:
            self._leave_unwritten(held, why)
        self._bus.publish("node.stopped", node=self._node())

    def _leave_unwritten(self, held: Sequence[Run], why: str | None) -> None:
        """Ends with a line that says what the ledger does not have."""
        lost = _named(held)
        parts = ([f"how {counted(len(lost), 'run')} ended"] if lost else []) + ([] if why is None else ["that it left"])
        self.unwritten = " and ".join(parts)
        log.error(
            "drain_unwritten",
            not_written=self.unwritten,
            runs=lost,
            reason=why,
            remedy="the next daemon on this state directory and database settles what is left",
        )

    def _mark(self, state: str) -> str | None:
        """Why it could not be written, if it could not."""
        try:
            now = self._store.now()
            with self._store.begin() as tx:
                tx.nodes.mark(self._node(), state, now)
        except Unavailable as error:
            log.warning("node_not_marked", state=state, reason=str(error))
            return error.reason
        return None


def _named(runs: Sequence[Run]) -> list[str]:
    return [f"{run.job} ({short(run.id)})" for run in runs]
