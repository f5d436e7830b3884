"""Starts the attempts of runs that this node has claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Bus, Clock, Launch
from scheduler.core.job import Job
from scheduler.core.model import Cause, FailReason, JobState, Run
from scheduler.core.outcome import Failed, GivenBack, Outcome
from scheduler.core.ports import Store
from scheduler.core.source import FetchCurrent
from scheduler.engine.held import Held, Live
from scheduler.engine.in_force import InForce
from scheduler.engine.subscribers import after_dead

log = structlog.get_logger("engine")

DEAD = 100
"""Dead letters before it that a run is told of."""


class Starter:
    """`done` hears what an attempt comes to, also of one that could not be started; while `accepts` says no, nothing is
    started, and goes back."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        held: Held,
        prepare: Callable[[Run, Job, JobState | None], Launch | Outcome],
        bus: Bus,
        clock: Clock,
        done: Callable[[Live, Outcome], None],
        accepts: Callable[[], bool],
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._held = held
        self._prepare = prepare
        self._bus = bus
        self._clock = clock
        self._done = done
        self._accepts = accepts

    def begin(self, lives: list[Live], states: Mapping[str, JobState]) -> None:
        """One after the other, in the order given; `states`: how their jobs stand."""
        dead = self._dead_before([live.run for live in lives])
        for live in lives:
            self._begin(live, states.get(live.run.job), dead.get(live.run.id, []))
            self._held.begun()

    def _dead_before(self, runs: Sequence[Run]) -> Mapping[str, list[str]]:
        """What the runs are told of the dead letters before them in their line; without a database, nothing."""
        ordered = [run for run in runs if run.rank is not None]
        if not ordered:
            return {}
        try:
            with self._store.read() as tx:
                return tx.runs.dead_before(ordered, DEAD)
        except Unavailable:
            return {}

    def _begin(self, live: Live, state: JobState | None, dead: list[str]) -> None:
        run = live.run
        self._bus.publish(
            "run.claimed", run=run.id, job=run.job, attempt=run.attempt, fence=run.fence, cause=str(run.cause)
        )
        outcome: Outcome | None
        try:
            outcome = self._start(live, state, dead) if self._accepts() else GivenBack(started=False)
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
        fetch = self._fetch(run, job)
        if fetch is not None:
            launch = replace(launch, fetch=fetch)
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
