"""The worker: claims runs, starts their attempts, ends those that must end, settles what they came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Attempts, Bus, Clock, Executor, Launch
from scheduler.core.job import Job
from scheduler.core.lifecycle import settle
from scheduler.core.model import Cause, FailReason, JobState, Run
from scheduler.core.outcome import Failed, GivenBack, Outcome, Span
from scheduler.core.ports import Store
from scheduler.core.requests import Claim, Due, Unfinished
from scheduler.core.source import FetchCurrent
from scheduler.engine.held import Held, Live
from scheduler.engine.in_force import InForce
from scheduler.engine.settler import Settler
from scheduler.engine.subscribers import after_dead
from scheduler.engine.sweep import Sweep

log = structlog.get_logger("engine")

DEAD = 100
"""Dead letters before it that a run is told of."""


class Worker:
    """`prepare` builds what an executor gets (raising nothing: what cannot be prepared comes back as an outcome);
    `wake` asks for a tick soon; `follow` loads the newest generation if it can; `aside` does work elsewhere, in the
    order in which it is given: starting hundreds of attempts must not make the planner late."""

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
        follow: Callable[[datetime], None],
        aside: Callable[[Callable[[], None]], object] = lambda work: work(),
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._executors = executors
        self._prepare = prepare
        self._bus = bus
        self._clock = clock
        self._node = node
        self._queues = queues
        self._wake = wake
        self._aside = aside
        self._held = Held(slots)
        self._settler = Settler(store, in_force, self._held, attempts, bus, clock, node, follow)
        self._sweep = Sweep(clock.monotonic)
        self._doubt = False
        self.accepting = True
        """False: nothing further is claimed (drain, or no trust)."""

    # ------------------------------------------------------------ what others ask

    def claim(self) -> Claim | None:
        """What this node could take right now. Whoever gets a claim must `take` it, whatever came of it."""
        if not self.accepting or self._in_force.behind:
            return None
        free = self._held.reserve()
        return Claim(self._node(), self._in_force.current.generation, free, self._queues) if free else None

    def take(self, claim: Claim, runs: list[Run] | None) -> None:
        """Holds and starts what was claimed. None: the transaction failed, and whether it took place is not known."""
        if runs is None:
            self._doubt = True
        lives = [self._hold(run) for run in runs or ()]
        if self._held.release(claim.limit):
            self._wake()
        if lives:
            self._aside(partial(self._begin_all, lives))

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
        return self.accepting and self._queues is None and not self._in_force.behind and not self._held.full

    # ------------------------------------------------------------ the loop

    def tick(self, now: datetime) -> int:
        """Ends what is late, settles what is over, ends what was cancelled, takes what is ready; the number of runs
        settled and taken."""
        self.end_late()
        settled = self._settler.tick(now)
        self._end_cancelled()
        if self._doubt:
            self._return_strays(now)
        # What is taken begins after what was settled has ended, and that may have been waited for.
        return settled + self._take_ready(self._store.now() if settled else now)

    def _take_ready(self, now: datetime) -> int:
        with self._store.read() as tx:
            if not tx.runs.any_pending():
                return 0  # So an idle daemon need not write once a second.
        taken = 0
        while (claim := self.claim()) is not None:
            runs: list[Run] | None = None
            part = self._sweep.begin()
            try:
                with self._store.begin() as tx:
                    promoted = None if taken else tx.runs.promote(now, part)
                    claimed = tx.runs.claim(claim, now)
                runs = claimed
                if promoted is not None and part is not None:
                    self._sweep.looked(promoted.after)
            finally:
                self.take(claim, runs)
            if not runs:
                break
            taken += len(runs)
        return taken

    def _return_strays(self, now: datetime) -> None:
        """Runs that the database says are held here, but of which nobody heard because the connection broke while they
        were claimed, go back: nothing of them was started."""
        if not self._held.close():
            return
        try:
            here = {(one.run.id, one.run.fence) for one in self._held.lives()}
            with self._store.begin() as tx:
                strays = [run for run in tx.runs.running(self._node()) if (run.id, run.fence) not in here]
                back = GivenBack(started=False)
                tx.runs.settle([settle(run, back, self._in_force.job(run.job), now, 0.0) for run in strays], now)
            self._doubt = False
        finally:
            self._held.reopen()
        for run in strays:
            log.warning("claim_returned", job_name=run.job, run_id=run.id)

    # ------------------------------------------------------------ starting

    def _past(self, runs: Sequence[Run]) -> tuple[Mapping[str, JobState], Mapping[str, list[str]]]:
        """What the runs are told about their jobs' past, and of the dead letters before them in their line; without a
        database, nothing."""
        try:
            with self._store.read() as tx:
                return tx.jobs.states({run.job for run in runs}), tx.runs.dead_before(runs, DEAD)
        except Unavailable:
            return {}, {}

    def _hold(self, run: Run) -> Live:
        job = self._in_force.job(run.job)
        executor = self._executors.get(job.action.kind) if job is not None else None
        timeout = job.timeout.total_seconds() if job is not None else 0.0
        live = Live(run, executor, self._clock.monotonic() + timeout, self._clock.boottime())
        self._held.add(live)
        return live

    def _begin_all(self, lives: list[Live]) -> None:
        states, dead = self._past([live.run for live in lives])
        for live in lives:
            self._begin(live, states.get(live.run.job), dead.get(live.run.id, []))
            self._held.begun()

    def _begin(self, live: Live, state: JobState | None, dead: list[str]) -> None:
        run = live.run
        self._bus.publish(
            "run.claimed", run=run.id, job=run.job, attempt=run.attempt, fence=run.fence, cause=str(run.cause)
        )
        outcome: Outcome | None
        try:
            outcome = self._start(live, state, dead) if self.accepting else GivenBack(started=False)
        except Exception as error:
            log.exception("start_failed", job_name=run.job, run_id=run.id)
            outcome = Failed(FailReason.ERROR, f"could not be started: {type(error).__name__}: {error}")
        if outcome is not None:
            self._done(live, outcome)

    def _start(self, live: Live, state: JobState | None, dead: list[str]) -> Outcome | None:
        run = after_dead(live.run, dead)
        job = self._in_force.job(run.job)
        if job is None:
            return Failed(FailReason.ERROR, "its job was removed", retryable=False)
        if live.executor is None:
            reason = f"this release has no executor for {job.action.kind!r}"
            return Failed(FailReason.ERROR, reason, retryable=False)
        launch = self._prepare(run, job, state)
        if not isinstance(launch, Launch):
            return launch
        launch = replace(launch, fetch=self._fetch(run, job))
        live.executor.start(launch, lambda outcome: self._done(live, outcome))
        if live.why is not None:
            live.executor.end(run.id, live.why)  # Asked for while it was not there to be ended.
        delay = None
        if run.scheduled_for is not None and run.attempt == 1 and run.cause is not Cause.BACKFILL:
            delay = (self._clock.now() - run.scheduled_for).total_seconds()
        self._bus.publish("run.started", run=run.id, job=run.job, attempt=run.attempt, delay=delay)
        return None

    def _fetch(self, run: Run, job: Job) -> FetchCurrent | None:
        """What is asked first for a run that is about an event."""
        if run.event is None or job.on_event is None:
            return None
        source = self._in_force.current.configuration.sources.get(job.on_event.source)
        return None if source is None else source.fetch_current

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

    def _end_cancelled(self) -> None:
        lives = self._held.lives()
        if not lives:
            return
        with self._store.read() as tx:
            requests = tx.runs.cancel_requests(self._node())
        for one in lives:
            if one.why is None and one.run.id in requests:
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
