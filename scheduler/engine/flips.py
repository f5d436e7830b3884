"""Flips: what makes a job missed, failing, unknown or well again, stored in the transaction that made it so, together
with what people are told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from scheduler.core.execution import Bus
from scheduler.core.job import Configuration, Job
from scheduler.core.model import Ack, JobState, Run, Status
from scheduler.core.ports import Transaction
from scheduler.core.requests import Settled
from scheduler.core.stamp import to_text
from scheduler.core.state import (
    Flip,
    State,
    Why,
    after_failure,
    after_success,
    after_withdrawal,
    forgiven_until,
    reached,
)
from scheduler.core.tiding import Kind, Tiding
from scheduler.core.value_object import value_object
from scheduler.engine.announce import announce, announced
from scheduler.engine.deadlines import refresh_deadlines
from scheduler.engine.unwatched import watch_log

US = "schedulerd"
"""The author of what nobody asked for."""


@value_object
class Flipped:
    """What a transaction stored: to be published when it is committed. `told`: notifications that wait since then."""

    flips: tuple[Flip, ...] = ()
    told: int = 0


NOTHING = Flipped()


def store_flips(
    tx: Transaction,
    flips: Sequence[Flip],
    configuration: Configuration,
    now: datetime,
    also: Sequence[Tiding] = (),
) -> Flipped:
    """Those that are still true, with their tidings, and further tidings. Costs nothing if there are none."""
    stored = tx.jobs.flip(flips, now) if flips else []
    tidings = [one for flip in stored if (one := _tiding(flip, configuration)) is not None]
    told = announce(tx, [*tidings, *also], configuration, now) if tidings or also else 0
    return Flipped(tuple(stored), told)


def publish_flips(bus: Bus, flipped: Flipped) -> None:
    """After the commit."""
    for one in flipped.flips:
        fields = {"job": one.job, "since": one.at, "why": str(one.why), "was": str(one.old), "run": one.run}
        bus.publish(f"job.{_word(one)}", **fields)
    announced(bus, flipped.told)


def _word(flip: Flip) -> str:
    if flip.why in (Why.ACK, Why.CHANGE, Why.REMOVAL):
        return "excused"
    return "recovered" if flip.new is State.UP else str(flip.new)


def _tiding(flip: Flip, configuration: Configuration) -> Tiding | None:
    """None: nobody is told of it."""
    key = f"flip:{flip.id}"
    match flip.new, flip.why:
        case State.MISSED, Why.DEADLINE:
            job = configuration.jobs.get(flip.job)
            scans = job is not None and job.compensate is not None
            return Tiding(Kind.SCAN_OVERDUE if scans else Kind.MISSED, flip.job, flip.at, key)
        case State.FAILING, Why.FAILURE:
            return Tiding(Kind.FAILING, flip.job, flip.at, key, flip.run)
        case State.UP, Why.SUCCESS if flip.old in (State.MISSED, State.FAILING):
            since = None if flip.was_since is None else to_text(flip.was_since)
            return Tiding(
                Kind.RECOVERED, flip.job, flip.at, key, flip.run, {"state": str(flip.old), "was_since": since}
            )
    return None


def flip_after_runs(
    tx: Transaction,
    configuration: Configuration,
    settled: Settled,
    deadlines: Mapping[str, datetime | None],
    now: datetime,
) -> Flipped:
    """What the ends of these runs make of their jobs. `deadlines`: those that a success has moved, as they are now. Of
    jobs that stay as they are nothing is read or written."""
    flips: list[Flip] = []
    also: list[Tiding] = []
    ended: dict[str, list[Run]] = {}
    for run in settled.runs:
        if run.job in settled.jobs and run.status in (Status.COMPLETED, Status.FAILED):
            ended.setdefault(run.job, []).append(run)
    for name, runs in ended.items():
        job = configuration.jobs.get(name)
        if job is not None:
            turn = _Turn(job, settled.jobs[name], runs, deadlines.get(name, settled.jobs[name].deadline_at))
            turn.judge(tx, now)
            flips += turn.flips
            also += turn.also
    return store_flips(tx, flips, configuration, now, also) if flips or also else NOTHING


@dataclass(slots=True)
class _Turn:
    """One job, of which `runs` have ended; `state` is from after that, but for its deadline: that is `deadline` now."""

    job: Job
    state: JobState
    runs: list[Run]
    deadline: datetime | None
    flips: list[Flip] = field(default_factory=list)
    also: list[Tiding] = field(default_factory=list)

    def judge(self, tx: Transaction, now: datetime) -> None:
        successes = [run for run in self.runs if run.status is Status.COMPLETED]
        if successes:
            self._miss(tx, successes, now)
            new = after_success(self._kept, self.deadline, now)
            self._become(new, _end(successes[-1], now), Why.SUCCESS, successes[-1].id)
        failures = self.runs[self.runs.index(successes[-1]) + 1 :] if successes else self.runs
        if failures:
            self._fail(failures, now, anew=bool(successes))

    @property
    def _kept(self) -> State:
        return self.flips[-1].new if self.flips else State(self.state.state)

    def _become(self, new: State, at: datetime, why: Why, run: str | None) -> None:
        if new is not self._kept:
            self.flips.append(Flip(self.job.name, self._kept, new, at, why, run))

    def _miss(self, tx: Transaction, successes: Sequence[Run], now: datetime) -> None:
        """A success that came after the deadline does not undo the miss, if nobody has come to note it yet."""
        missed = self.state.deadline_at
        if missed is None or missed == self.deadline or missed >= now or self._kept is State.MISSED:
            return
        grace = self.job.watch.grace
        ends = [_end(run, now) for run in successes if (run.scheduled_for or run.started_at or now) >= missed - grace]
        if min(ends, default=missed) <= missed:
            return
        forgiven = forgiven_until(missed, grace, watch_log(tx).by(now))
        if forgiven is None or min(ends) > forgiven:
            self._become(State.MISSED, missed, Why.DEADLINE, None)

    def _fail(self, failures: Sequence[Run], now: datetime, *, anew: bool) -> None:
        count, threshold, last = self.state.consecutive_failures, self.job.watch.alert_after, failures[-1]
        self._become(after_failure(self._kept, count, threshold), _end(last, now), Why.FAILURE, last.id)
        if self._kept is State.MISSED and reached(count, len(failures), threshold, anew=anew):
            self.also.append(Tiding(Kind.FAILING, self.job.name, _end(last, now), f"failing:{last.id}", last.id))


def _end(run: Run, now: datetime) -> datetime:
    return run.finished_at or now


def amend_deadlines(
    tx: Transaction, jobs: Sequence[Job], now: datetime, why: Why, configuration: Configuration
) -> Flipped:
    """Recomputes the deadlines of jobs of which somebody has changed what is expected; a miss that is none any more
    ends, and nobody is told that the job has recovered."""
    states = tx.jobs.states([job.name for job in jobs]) if jobs else {}
    deadlines = refresh_deadlines(tx, jobs, now, states)
    flips = []
    for job in jobs:
        state = states.get(job.name)
        if state is None or state.state != State.MISSED:
            continue
        deadline = deadlines.get(job.name, state.deadline_at)
        new = after_withdrawal(State.MISSED, deadline, state.consecutive_failures, job.watch.alert_after, now)
        if new is not State.MISSED:
            flips.append(Flip(job.name, State.MISSED, new, now, why))
    return store_flips(tx, flips, configuration, now)


def doubt(
    tx: Transaction, until: Mapping[str, datetime], reason: str, configuration: Configuration, now: datetime
) -> Flipped:
    """Excuses what was expected of these jobs up to the given instants, because nobody can know whether it succeeded.
    A job that is kept as missed or failing stays so: that is known, and whoever was told of it is told of its end."""
    if not until:
        return NOTHING
    states = tx.jobs.states(until)
    flips: list[Flip] = []
    jobs: list[Job] = []
    for name, last in until.items():
        job, state = configuration.jobs[name], states[name]
        if state.deadline_at is None or state.state == State.MISSED or state.deadline_at - job.watch.grace > last:
            continue
        ack = Ack(name, state.deadline_at - job.watch.grace, last, now, reason, US)
        tx.jobs.ack(ack, settled=state.settled_until or state.since)
        jobs.append(job)
        if state.state not in (State.UNKNOWN, State.FAILING):
            flips.append(Flip(name, State(state.state), State.UNKNOWN, state.deadline_at, Why.OUTAGE))
    refresh_deadlines(tx, jobs, now, states)
    return store_flips(tx, flips, configuration, now)
