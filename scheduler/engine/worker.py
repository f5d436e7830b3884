"""The worker: claims runs, starts their attempts, ends those that must end, settles what they came to."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from scheduler.core.lifecycle import settle
from scheduler.core.errors import Unavailable
from scheduler.core.model import FailReason, Job, JobState, Run
from scheduler.core.outcome import Failed, Outcome
from scheduler.core.ports import Attempts, Bus, Claim, Clock, Executor, Launch, Settlement, Store
from scheduler.engine.aftermath import settle_all
from scheduler.engine.in_force import InForce

log = structlog.get_logger("engine")

SETTLE_BATCH = 200


@dataclass(slots=True)
class Live:
    """A run this node holds. `why` is set once its end was asked for; `outcome` once it is over but not yet settled."""

    run: Run
    executor: Executor | None
    expires: float
    why: str | None = None
    outcome: Outcome | None = None


@dataclass(slots=True)
class Held:
    """All live runs of this node, shared by the threads that start, end and settle them."""

    lives: dict[str, Live] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Worker:
    """`prepare` builds what an executor gets (raising nothing: what cannot be prepared comes back as an outcome);
    `wake` asks for a tick soon."""

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
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._executors = executors
        self._prepare = prepare
        self._attempts = attempts
        self._bus = bus
        self._clock = clock
        self._node = node
        self._slots = slots
        self._queues = queues
        self._wake = wake
        self._held = Held()
        self._over: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._unsettled: list[str] = []
        self.accepting = True
        """False: nothing further is claimed (drain, or no trust)."""

    # ------------------------------------------------------------ what others ask

    def claim(self) -> Claim | None:
        """What this node could take right now."""
        free = self._slots - len(self._held.lives)
        if not self.accepting or free <= 0 or self._in_force.behind:
            return None
        return Claim(self._node(), self._in_force.current.generation, free, self._queues)

    def take(self, runs: list[Run]) -> None:
        """Starts claimed runs."""
        if not runs:
            return
        states = self._states({run.job for run in runs})
        for run in runs:
            self._begin(run, states.get(run.job))

    def live(self) -> list[Run]:
        with self._held.lock:
            return [one.run for one in self._held.lives.values()]

    def end_all(self, why: str) -> None:
        for one in self._snapshot():
            self._end(one, why)

    def give_back_all(self) -> None:
        """After this node was declared dead and its children are gone: forgets everything; somebody else closed it."""
        with self._held.lock:
            self._held.lives.clear()
        self._unsettled.clear()

    # ------------------------------------------------------------ the loop

    def tick(self, now: datetime) -> int:
        """Settles what is over, ends what is late or cancelled, takes what is ready; the number of runs touched."""
        settled = self._settle(now)
        self._end_late()
        self._end_cancelled()
        return settled + self._take_ready(now)

    def _take_ready(self, now: datetime) -> int:
        taken = 0
        promoted = False
        while (claim := self.claim()) is not None:
            with self._store.begin() as tx:
                if not promoted:
                    tx.runs.promote(now)
                    promoted = True
                claimed = tx.runs.claim(claim, now)
            if not claimed:
                break
            self.take(claimed)
            taken += len(claimed)
        return taken

    def _states(self, jobs: set[str]) -> Mapping[str, JobState]:
        """What the runs are told about their jobs' past; without a database, nothing."""
        try:
            with self._store.read() as tx:
                return tx.jobs.states(jobs)
        except Unavailable:
            return {}

    def _begin(self, run: Run, state: JobState | None) -> None:
        job = self._in_force.job(run.job)
        executor = self._executors.get(job.action.kind) if job is not None else None
        self._bus.publish(
            "run.claimed", run=run.id, job=run.job, attempt=run.attempt, fence=run.fence, cause=str(run.cause)
        )
        timeout = job.timeout.total_seconds() if job is not None else 0.0
        live = Live(run, executor, self._clock.monotonic() + timeout)
        with self._held.lock:
            self._held.lives[run.id] = live
        outcome: Outcome | None
        try:
            outcome = self._start(live, job, state)
        except Exception as error:
            log.exception("start_failed", job_name=run.job, run_id=run.id)
            outcome = Failed(FailReason.ERROR, f"could not be started: {type(error).__name__}: {error}")
        if outcome is not None:
            self._done(live, outcome)

    def _start(self, live: Live, job: Job | None, state: JobState | None) -> Outcome | None:
        run = live.run
        if job is None:
            return Failed(FailReason.ERROR, "its job was removed", retryable=False)
        if live.executor is None:
            reason = f"this release has no executor for {job.action.kind!r}"
            return Failed(FailReason.ERROR, reason, retryable=False)
        launch = self._prepare(run, job, state)
        if not isinstance(launch, Launch):
            return launch
        live.executor.start(launch, lambda outcome: self._done(live, outcome))
        self._bus.publish("run.started", run=run.id, job=run.job, attempt=run.attempt)
        return None

    def _done(self, live: Live, outcome: Outcome) -> None:
        live.outcome = outcome
        self._over.put(live.run.id)
        self._wake()

    # ------------------------------------------------------------ ending

    def _end_late(self) -> None:
        now = self._clock.monotonic()
        for one in self._snapshot():
            if one.why is None and now >= one.expires:
                self._end(one, "timeout")

    def _end_cancelled(self) -> None:
        if not self._held.lives:
            return
        with self._store.read() as tx:
            requests = tx.runs.cancel_requests(self._node())
        for one in self._snapshot():
            if one.why is None and one.run.id in requests:
                self._end(one, "cancel")

    def _end(self, one: Live, why: str) -> None:
        if one.outcome is None and one.why is None and one.executor is not None:
            one.why = why
            one.executor.end(one.run.id, why)

    def _snapshot(self) -> list[Live]:
        with self._held.lock:
            return list(self._held.lives.values())

    # ------------------------------------------------------------ settling

    def _settle(self, now: datetime) -> int:
        """What cannot be written now stays and is tried again at the next tick."""
        settled = 0
        while True:
            while len(self._unsettled) < SETTLE_BATCH:
                try:
                    self._unsettled.append(self._over.get_nowait())
                except queue.Empty:
                    break
            batch = self._unsettled[:SETTLE_BATCH]
            if not batch:
                return settled
            self._settle_batch(batch, now)
            del self._unsettled[: len(batch)]
            settled += len(batch)

    def _settle_batch(self, batch: list[str], now: datetime) -> None:
        with self._held.lock:
            ended = [self._held.lives[key] for key in batch if key in self._held.lives]
        keys = [(one.run.id, one.run.attempt) for one in ended]
        outputs = self._attempts.outputs(keys)
        with self._store.begin() as tx:
            requests = tx.runs.cancel_requests(self._node())
            decided = [self._decide(one, requests.get(one.run.id), now) for one in ended]
            tx.runs.put_output(outputs)
            after = settle_all(tx, self._in_force, decided, now)
        with self._held.lock:
            for key in batch:
                self._held.lives.pop(key, None)
        self._attempts.forget(keys)
        for run in after:
            self._bus.publish(
                "run.settled",
                run=run.id,
                job=run.job,
                attempt=run.attempt,
                status=str(run.status),
                reason=run.reason,
                started_at=run.started_at,
                finished_at=run.finished_at or now,
            )

    def _decide(self, one: Live, cancel: str | None, now: datetime) -> Settlement:
        outcome = one.outcome
        assert outcome is not None
        run = replace(one.run, cancel=cancel)
        spread = random.random()  # noqa: S311 -- spreads retries, is no secret
        return settle(run, outcome, self._in_force.job(run.job), now, spread)
