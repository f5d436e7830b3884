"""The worker: claims runs, starts their attempts, ends those that must end, settles what they came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from math import ceil

import structlog

from scheduler.core.execution import Attempts, Bus, Clock, Executor, Launch
from scheduler.core.job import Job
from scheduler.core.lifecycle import settle
from scheduler.core.look import Look
from scheduler.core.model import JobState, Run
from scheduler.core.outcome import GivenBack, Outcome, Span
from scheduler.core.ports import Store, Transaction
from scheduler.core.requests import Claim, Claimed, Due, Unfinished
from scheduler.engine.held import Held, Live
from scheduler.engine.in_force import InForce
from scheduler.engine.settler import Settler
from scheduler.engine.starter import Starter
from scheduler.engine.sweep import Sweep

log = structlog.get_logger("engine")

LONGEST_ROUND = 0.2
"""Seconds after which the worker looks at the rest of its work, however much goes on ending."""


class Worker:
    """`prepare` builds what an executor gets (raising nothing: what cannot be prepared comes back as an outcome);
    `wake` asks for a tick soon, `later` for one after so long (of several requests the last counts); `follow` loads the
    newest generation if it can; `aside` does work elsewhere, in the order in which it is given: starting hundreds of
    attempts must not make the planner late. While nobody `vouches` for what would be started here, nothing is claimed:
    it would only come back."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        executors: Mapping[str, Executor],
        prepare: Callable[[Run, Job, JobState | None], Launch | Outcome],
        attempts: Attempts,
        bus: Bus,
        clock: Clock,
        node: Callable[[], str],
        slots: int,
        queues: tuple[str, ...] | None,
        wake: Callable[[], None],
        later: Callable[[timedelta], None],
        follow: Callable[[datetime], None],
        aside: Callable[[Callable[[], None]], object] = lambda work: work(),
        vouches: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._executors = executors
        self._clock = clock
        self._node = node
        self._queues = queues
        self._wake = wake
        self._later = later
        self._aside = aside
        self._vouches = vouches
        self._held = Held(slots)
        self._settler = Settler(store, in_force, self._held, attempts, bus, clock, node, follow)
        self.accepting: bool = True
        """False: nothing further is claimed (drain, or declared dead)."""
        self._starter = Starter(store, in_force, self._held, prepare, bus, clock, self._done, self._may_start)
        self._sweep = Sweep(clock.monotonic)
        self._doubt = False
        self._served: tuple[str, ...] = ()
        """Queues in the order in which runs were last taken out of them."""

    # ------------------------------------------------------------ what others ask

    def claim(self, freed: int = 0) -> Claim | None:
        """What this node could take right now, or once `freed` of what it holds is dropped. Whoever gets a claim must
        `take` it, whatever came of it."""
        if not self._may_start() or self._in_force.behind:
            return None
        free = self._held.reserve(freed)
        if not free:
            return None
        return Claim(self._node(), self._in_force.current.generation, free, self._queues, served=self._served)

    def take(self, claim: Claim, claimed: Claimed | None) -> None:
        """Holds and starts what was claimed. None: the transaction failed, and whether it took place is not known."""
        if claimed is None:
            self._doubt = True
            claimed = Claimed()
        lives = [self._hold(run) for run in claimed.runs]
        served = (*self._served, *(live.run.queue for live in lives))
        self._served = tuple(dict.fromkeys(reversed(served)))[::-1]
        if self._held.release(claim.limit):
            self._wake()
        if lives:
            self._aside(partial(self._starter.begin, lives, claimed.states))

    def amend(self, due: Due, now: datetime) -> Due:
        """The same without the runs that have ended here for good and wait to be written down: what is over is in
        nobody's way. Of another node's runs only the ledger is known. From any thread, while the job's row is held."""
        left = tuple(one for one in due.unfinished if not self._finished(one, now))
        return due if len(left) == len(due.unfinished) else replace(due, unfinished=left)

    def _finished(self, one: Unfinished, now: datetime) -> bool:
        """Whether its attempt is over and none will follow, which the ledger need not know yet."""
        live = self._held.ended(one.run, one.attempt)
        if live is None or live.outcome is None:
            return False
        return settle(live.run, live.outcome, self._in_force.job(one.job), now, 0.0).status.final

    def live(self) -> list[Run]:
        """All that is held here."""
        return [one.run for one in self._held.lives()]

    def running(self) -> list[Run]:
        """Those of them that have not ended; the end of the others is yet to be written down."""
        return [one.run for one in self._held.lives() if one.outcome is None]

    @property
    def idle(self) -> bool:
        """Holds nothing, and no claim is under way."""
        return self._held.empty

    @property
    def over(self) -> bool:
        """Nothing runs any more of what it holds."""
        return self._held.over

    def end_all(self, why: str) -> None:
        for one in self._held.lives():
            self._end(one, why)

    @property
    def takes_all(self) -> bool:
        """Whatever could be taken now is taken here; nobody else is needed for it."""
        return self._may_start() and self._queues is None and not self._in_force.behind and not self._held.full

    # ------------------------------------------------------------ the loop

    def rests(self, look: Look) -> bool:
        """Nothing waits, and nothing that is held has ended or must end; `end_late` is apart."""
        return self._settler.empty and not (look.pending or look.cancels or self._doubt)

    def tick(self, now: datetime) -> int:
        """Ends what is late, settles what is over, ends what was cancelled, takes what is ready; the number of runs
        settled and taken."""
        read = self._clock.monotonic()
        self.end_late()
        settled = self._turn_over(now)
        glance = self._store.glance(self._node())
        if settled:
            # What is taken begins after what was settled has ended, and that may have been waited for.
            now, read = glance.now, self._clock.monotonic()
        self._end_cancelled(glance.cancels)
        pending = glance.pending
        if self._doubt:
            pending = self._return_strays(now) or pending
        if not pending:
            return settled  # So an idle daemon need not write once a second.
        return settled + self._take_ready(now, read)

    def _turn_over(self, now: datetime) -> int:
        """Writes down what has ended, and takes in the same transaction what is ready for its place."""
        boottime, begun = self._clock.boottime(), time.monotonic()
        settled = 0
        self._settler.begin()
        while batch := self._settler.gather():
            self._turn(batch, now, boottime)
            settled += len(batch)
            if time.monotonic() - begun > LONGEST_ROUND:
                self._wake()
                break
        return settled

    def _turn(self, batch: list[Live], now: datetime, boottime: float) -> None:
        claim = self.claim(len(batch))
        if claim is None:
            self._settler.settle(batch, now, boottime)
            return
        # What is taken begins after what is settled has ended.
        later = now + timedelta(seconds=self._clock.boottime() - boottime)
        found: list[Claimed] = []
        claimed: Claimed | None = None

        def take_too(tx: Transaction, live: bool) -> None:
            found[:] = [tx.runs.claim(replace(claim, skip_busy_queues=True, held=True), later)] if live else []

        try:
            if self._settler.settle(batch, now, boottime, take_too):
                claimed = found[0] if found else Claimed()
        finally:
            self.take(claim, claimed)

    def _take_ready(self, now: datetime, read: float) -> int:
        """`read`: when the clock of planning showed `now`, in monotonic seconds."""
        taken, first = 0, True
        while (claim := self.claim()) is not None:
            claimed: Claimed | None = None
            token: float | None = None
            part = self._sweep.begin()
            try:
                with self._store.begin() as tx:
                    promoted = tx.runs.promote(now, part) if first else None
                    # The rows of what was promoted are held: whoever holds a queue may wait for them.
                    moved = promoted is not None and promoted.runs > 0
                    found = tx.runs.claim(replace(claim, skip_busy_queues=moved), now)
                    if not found.runs and self._rated:
                        token = tx.queues.next_token(self._queues, now)
                claimed = found
                if promoted is not None and part is not None:
                    self._sweep.looked(promoted.after)
            finally:
                self.take(claim, claimed)
            if token is not None:
                # A bucket of one holds no second token: what comes while nobody looks is lost.
                left = max(0.0, token - (self._clock.monotonic() - read))
                self._later(timedelta(microseconds=ceil(left * 1e6)))
            if not (found.runs or moved):
                break
            taken, first = taken + len(found.runs), False
        return taken

    @property
    def _rated(self) -> bool:
        """Some queue has a rate."""
        return any(queue.rate is not None for queue in self._in_force.current.configuration.queues.values())

    def _return_strays(self, now: datetime) -> bool:
        """Runs that the database says are held here, but of which nobody heard because the connection broke while they
        were claimed, go back: nothing of them was started. Whether there were any."""
        if not self._held.close():
            return False
        try:
            here = {(one.run.id, one.run.fence) for one in self._held.lives()}
            with self._store.begin() as tx:
                # A claim's commit may still be under way on the server: what it claimed is not seen before it ends.
                tx.nodes.hold_alone(self._node())
                strays = [run for run in tx.runs.running(self._node()) if (run.id, run.fence) not in here]
                back = GivenBack(started=False)
                tx.runs.settle([settle(run, back, self._in_force.job(run.job), now, 0.0) for run in strays], now)
            self._doubt = False
        finally:
            self._held.reopen()
        for run in strays:
            log.warning("claim_returned", job_name=run.job, run_id=run.id)
        return bool(strays)

    # ------------------------------------------------------------ starting

    def _may_start(self) -> bool:
        return self.accepting and self._vouches()

    def _hold(self, run: Run) -> Live:
        job = self._in_force.job(run.job)
        executor = self._executors.get(job.action.kind) if job is not None else None
        timeout = job.timeout.total_seconds() if job is not None else 0.0
        live = Live(run, executor, self._clock.monotonic() + timeout, self._clock.boottime())
        self._held.add(live)
        return live

    def _done(self, live: Live, outcome: Outcome) -> None:
        if self._held.end(live, outcome, _at_work(live, outcome, self._clock.boottime())):
            self._settler.add(live)
            self._wake()

    # ------------------------------------------------------------ ending

    def end_late(self) -> None:
        """Ends what has run longer than its time-out. Needs no database."""
        now = self._clock.monotonic()
        for one in self._held.lives():
            if one.why is None and now >= one.expires:
                self._end(one, "timeout")

    def _end_cancelled(self, cancels: Collection[str]) -> None:
        if cancels:
            for one in self._held.lives():
                if one.why is None and one.run.id in cancels:
                    self._end(one, "cancel")

    def _end(self, one: Live, why: str) -> None:
        if one.outcome is not None or one.why is not None or one.executor is None:
            return
        one.why = why
        try:
            one.executor.end(one.run.id, why)
        except Exception:
            log.exception("end_failed", job_name=one.run.job, run_id=one.run.id, why=why)
            one.why = None  # Asked again at the next tick.


def _at_work(live: Live, outcome: Outcome, now: float) -> Span:
    """As whoever watched it says; else from its start here until `now`, in seconds of CLOCK_BOOTTIME."""
    told = outcome.span
    if told is None:
        return Span(now, live.began)
    return told if told.began is not None else Span(told.ended, live.began)
