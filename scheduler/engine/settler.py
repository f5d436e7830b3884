"""Writes down what ended attempts came to; what cannot be written now is kept and tried again."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Attempts, Bus, Clock
from scheduler.core.lifecycle import settle, timed
from scheduler.core.outcome import Outcome, Succeeded
from scheduler.core.ports import Store, Transaction
from scheduler.core.requests import Settlement
from scheduler.engine.aftermath import announce_settled, settle_all
from scheduler.engine.fan_out import LoadFirst
from scheduler.engine.flips import publish_flips
from scheduler.engine.held import Held, Live
from scheduler.engine.in_force import InForce

log = structlog.get_logger("engine")

BATCH = 200
"""Attempts per transaction."""
LULL, LINGER = 0.01, 0.05
"""Seconds: in a crowd, a batch is closed when nothing has ended for so long, or after so long at the latest."""
PATIENCE = 0.25
"""Seconds for which attempts that wait to be started go first: writing down can wait, being late cannot."""


Further = Callable[[Transaction, bool], None]
"""Done after the settling, in its transaction, which holds this node's row: it is told whether that is live."""


class Settler:
    """`add` from any thread, the rest from one. `follow` loads the newest generation, if it can be loaded."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        held: Held,
        attempts: Attempts,
        bus: Bus,
        clock: Clock,
        node: Callable[[], str],
        follow: Callable[[datetime], None],
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._held = held
        self._attempts = attempts
        self._bus = bus
        self._clock = clock
        self._node = node
        self._follow = follow
        self._over: queue.SimpleQueue[Live] = queue.SimpleQueue()
        self._waiting: list[Live] = []
        self._stuck: list[Live] = []
        self._crowd = False

    def add(self, live: Live) -> None:
        """`live.outcome` is known from now on."""
        self._over.put(live)

    @property
    def empty(self) -> bool:
        """Nothing that has ended waits to be written down."""
        return self._over.empty() and not (self._waiting or self._stuck)

    def begin(self) -> None:
        """A round of gathering begins: what could not be written down in the last one is gathered again."""
        self._waiting, self._stuck = [*self._stuck, *self._waiting], []

    def gather(self) -> list[Live]:
        """What has ended, oldest first, until it is settled. What ends alone is settled at once; in a crowd it is worth
        waiting until half of what is held has ended: a transaction for thirty costs hardly more than one for three, and
        the other half keeps the machine busy meanwhile."""
        begun = time.monotonic()
        while len(self._waiting) < BATCH:
            more = 2 * len(self._waiting) < self._held.count and self._waits(time.monotonic() - begun)
            try:
                self._waiting.append(self._over.get(timeout=LULL) if more else self._over.get_nowait())
            except queue.Empty:
                if not (more and self._held.starting):
                    break
        batch = self._waiting[:BATCH]
        self._crowd = len(batch) > 1
        return batch

    def _waits(self, waited: float) -> bool:
        """Whether a batch that was begun so many seconds ago stays open."""
        if self._waiting and self._held.starting:
            return waited < PATIENCE
        return self._crowd and waited < LINGER

    def settle(self, batch: list[Live], now: datetime, boottime: float, further: Further | None = None) -> bool:
        """Writes down what was gathered, and does what is given `further` in the same transaction; whether that was
        done: an attempt that cannot be written down with the others is written down alone, without it. Raises
        Unavailable when the database is away; nothing is lost by it, and whether it took place is not known."""
        # an attempt that was dropped meanwhile belongs to a life that is over
        ended = [one for one in batch if self._held.has(one)]
        done = bool(ended)
        try:
            self._together(ended, now, boottime, further)
        except Unavailable:
            raise
        except Exception:
            log.exception("settling_failed", retry="each attempt alone")
            done = False
            for one in ended:
                self._alone(one, now, boottime)
        del self._waiting[: len(batch)]
        return done

    def _together(
        self,
        ended: Sequence[Live],
        now: datetime,
        boottime: float,
        further: Further | None = None,
        *,
        bare: bool = False,
    ) -> None:
        if not ended:
            return
        try:
            self._write(ended, now, boottime, further, bare=bare)
        except LoadFirst:
            self._follow(now)
            self._write(ended, now, boottime, further, bare=bare)

    def _write(
        self,
        ended: Sequence[Live],
        now: datetime,
        boottime: float,
        further: Further | None,
        *,
        bare: bool,
    ) -> None:
        keys = [(one.run.id, one.run.attempt) for one in ended]
        outputs = [] if bare else self._attempts.outputs(keys)
        words = [] if bare else self._attempts.last_words(keys)
        with self._store.begin() as tx:
            # What succeeded did, whoever asked for its end.
            sure = all(isinstance(one.outcome, Succeeded) for one in ended)
            requests = {} if sure else tx.runs.cancel_requests(self._node())
            decided = [self._decide(one, requests.get(one.run.id), now, boottime, bare=bare) for one in ended]
            if words:
                # A planner that holds the job may ask for the end of the run, and must not wait for us meanwhile.
                tx.runs.hold_for(decided)
            tx.runs.put_output(outputs, [one.run for one in ended])
            tx.runs.report(words)  # While they are RUNNING: the next attempt gets the last checkpoint.
            after = settle_all(tx, self._in_force, decided, now)
            if further is not None:
                further(tx, self._node() in after.live)
        self._held.drop(ended)
        with self._bus.together():
            publish_flips(self._bus, after.flipped)
            for run in after.runs:
                announce_settled(self._bus, run, now)
        self._attempts.forget(keys)

    def _alone(self, one: Live, now: datetime, boottime: float) -> None:
        """After a batch that failed: what one attempt printed or returned must not hold up the others. If it cannot be
        written, the attempt is settled without it."""
        for bare in (False, True):
            try:
                self._together([one], now, boottime, bare=bare)
            except Unavailable:
                raise
            except Exception:
                log.exception("settling_failed", job_name=one.run.job, run_id=one.run.id, bare=bare)
            else:
                return
        self._stuck.append(one)

    def _decide(self, one: Live, cancel: str | None, now: datetime, boottime: float, *, bare: bool) -> Settlement:
        assert one.outcome is not None
        run = one.run if one.run.cancel == cancel else replace(one.run, cancel=cancel)
        outcome = _without_result(one.outcome) if bare else one.outcome
        spread = random.random()  # noqa: S311 -- spreads retries, is no secret
        settlement = settle(run, outcome, self._in_force.job(run.job), now, spread)
        return timed(settlement, one.span, now, boottime)


def _without_result(outcome: Outcome) -> Outcome:
    return replace(outcome, result=None) if isinstance(outcome, Succeeded) else outcome
