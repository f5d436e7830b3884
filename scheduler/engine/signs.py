"""Signs of life of external jobs (core.sign.Signs): their runs are recorded as they are told, settled as ours are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from scheduler.core.durations import format_duration
from scheduler.core.errors import NotFound, Refused, Unavailable
from scheduler.core.execution import Bus, Clock
from scheduler.core.ids import short
from scheduler.core.job import Job
from scheduler.core.look import Look
from scheduler.core.model import ELSEWHERE, Cause, FailReason, NewRun, Output, Run, Status
from scheduler.core.ports import Store, Transaction
from scheduler.core.requests import Settlement
from scheduler.core.sign import LONGEST_TEXT, Fate, Noted, Sign, Signs, Word, fate_of, occurrence_of
from scheduler.engine.aftermath import Aftermath, announce_settled, settle_all
from scheduler.engine.fan_out import LoadFirst, check_loaded
from scheduler.engine.flips import publish_flips
from scheduler.engine.in_force import InForce
from scheduler.engine.new_run import new_run

log = structlog.get_logger("engine")

EVERY = 5.0
"""Seconds between two looks for runs that never told their end."""
BACKSTOP = timedelta(hours=24)
"""The timeout of a run whose job is gone."""
BATCH = 500

_UNTOLD = Fate(Status.FAILED, str(FailReason.LOST), "it told no end before the next one began")
_GIVEN_UP = (str(FailReason.LOST), str(FailReason.TIMEOUT))
"""Reasons of runs of which nobody knew the end: it may still be told."""


@dataclass(slots=True)
class _Done:
    """What one transaction did, told after its commit."""

    noted: Noted
    begun: Run | None = None
    settled: list[Aftermath] = field(default_factory=list)


class SignDesk(Signs):
    """`follow` loads a newer configuration if there is one."""

    def __init__(
        self, store: Store, in_force: InForce, bus: Bus, clock: Clock, follow: Callable[[datetime], None]
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._clock = clock
        self._follow = follow
        self._looked = float("-inf")

    def take(self, sign: Sign) -> Noted:
        now = self._store.now()
        try:
            done = self._take(sign, now)
        except LoadFirst:
            self._follow(now)
            done = self._take(sign, now)
        if done.begun is not None:
            self._bus.publish("run.started", run=done.begun.id, job=sign.job, attempt=1, delay=None)
        for one in done.settled:
            self._tell(one, now)
        return done.noted

    def rests(self, look: Look) -> bool:
        """Nothing runs elsewhere."""
        return not look.elsewhere

    def tick(self, _: object) -> int:
        """Ends runs that have told no end within their job's timeout, or whose job runs here now; their number. It
        looks every 5 s, and asks the store for the time only then."""
        if self._in_force.behind is not None or self._clock.monotonic() - self._looked < EVERY:
            return 0
        self._looked = self._clock.monotonic()
        now = self._store.now()
        with self._store.read() as tx:
            if not self._over(tx.runs.elsewhere(), now):
                return 0
        try:
            with self._store.begin() as tx:
                ended = self._over(tx.runs.elsewhere(), now)[:BATCH]
                after = settle_all(tx, self._in_force, ended, now, orphans=True)
        except LoadFirst:
            self._follow(now)
            return 0
        self._tell(after, now)
        return len(after.runs)

    # ------------------------------------------------------------ one sign

    def _take(self, sign: Sign, now: datetime) -> _Done:
        with self._store.begin() as tx:
            loaded = self._in_force.current
            tx.jobs.states([sign.job], lock=True)  # The signs of one job come one after the other.
            if not check_loaded(tx, self._in_force, loaded):
                raise Unavailable(
                    f"this node stands aside: {self._in_force.behind}",
                    hint="tell another node; `schedctl nodes` shows them",
                )
            job = _external(loaded.configuration.jobs.get(sign.job), sign.job)
            match sign.word:
                case Word.START:
                    return self._start(tx, job, sign, now)
                case Word.LOG:
                    return self._add(tx, job, sign)
                case Word.SUCCESS | Word.FAIL:
                    return self._end(tx, job, sign, now)

    def _start(self, tx: Transaction, job: Job, sign: Sign, now: datetime) -> _Done:
        settled: list[Aftermath] = []
        known = _find(tx, job, sign)
        if known is not None and sign.rid is not None:
            return _Done(Noted(known.id, new=False))
        if known is not None:
            ended = [_settlement(known, _UNTOLD, now, None)]
            settled.append(settle_all(tx, self._in_force, ended, now, orphans=True))
        begun = _begin(tx, job, sign, now)
        _keep_text(tx, begun, sign, complete=False)
        return _Done(Noted(begun.id), begun, settled)

    def _end(self, tx: Transaction, job: Job, sign: Sign, now: datetime) -> _Done:
        run = _find(tx, job, sign)
        begun = None
        if run is None:
            run = begun = _begin(tx, job, sign, now)
        elif run.status.final:
            begun = _begin_late(tx, job, sign, run, now) if run.reason in _GIVEN_UP else None
            if begun is None:
                return _Done(Noted(run.id, new=False))
            run = begun
        # Before what follows from the end: who is told of that is told the last line.
        _keep_text(tx, run, sign, complete=True)
        took = None if sign.took is None else sign.took.total_seconds()
        if took is None and run.started_at is not None and run.started_at < now - sign.ago:
            took = (now - sign.ago - run.started_at).total_seconds()
        ended = [_settlement(run, fate_of(sign), now - sign.ago, took)]
        after = settle_all(tx, self._in_force, ended, now, orphans=True)
        return _Done(Noted(run.id), begun, [after])

    def _add(self, tx: Transaction, job: Job, sign: Sign) -> _Done:
        run = _find(tx, job, sign) or (tx.runs.latest_elsewhere(job.name) if sign.rid is None else None)
        if run is None:
            return _Done(Noted(None, new=False))
        _keep_text(tx, run, sign, complete=run.status.final)
        return _Done(Noted(run.id))

    # ------------------------------------------------------------ runs that tell nothing

    def _over(self, runs: Sequence[Run], now: datetime) -> list[Settlement]:
        return [_settlement(run, fate, now, None) for run in runs if (fate := self._fate(run, now)) is not None]

    def _fate(self, run: Run, now: datetime) -> Fate | None:
        """None: it may still tell its end."""
        job = self._in_force.job(run.job)
        if job is not None and not job.external:
            return Fate(Status.CANCELED, "canceled", "its job runs here now")
        timeout = BACKSTOP if job is None else job.timeout
        if now - (run.started_at or run.created_at) <= timeout:
            return None
        words = f"it told no end within its timeout of {format_duration(timeout)}"
        return Fate(Status.FAILED, str(FailReason.TIMEOUT), words)

    def _tell(self, after: Aftermath, now: datetime) -> None:
        publish_flips(self._bus, after.flipped)
        for run in after.runs:
            announce_settled(self._bus, run, now)


def _external(job: Job | None, name: str) -> Job:
    if job is None:
        raise NotFound("there is no such job", hint="its name is the one in jobs.yaml")
    if not job.external:
        raise Refused(
            f"{name} runs here: how it went is known from its own runs",
            hint="write external: true in the place of its action, if it runs somewhere else",
        )
    return job


def _find(tx: Transaction, job: Job, sign: Sign) -> Run | None:
    """The run that the sign is about: with `rid` the one known by it, else the one that runs and has none."""
    if sign.rid is not None:
        return tx.runs.by_key(job.name, _key(sign.rid))
    return next((run for run in reversed(tx.runs.elsewhere(job.name)) if run.key == run.id), None)


def _key(rid: str) -> str:
    return f"ping:{rid}"


def _begin(tx: Transaction, job: Job, sign: Sign, now: datetime) -> Run:
    began = now - sign.began
    key = None if sign.rid is None else _key(sign.rid)
    run = tx.runs.begin_elsewhere(_new(job, sign, key, began, now), began)
    assert run is not None, "the job's row is locked, and nobody had this key"
    return run


def _begin_late(tx: Transaction, job: Job, sign: Sign, given_up: Run, now: datetime) -> Run | None:
    """A run in the place of one that was given up, whose end is told after all: what has a final status keeps it. None:
    there is one already."""
    began = now - sign.began if sign.took is not None else given_up.started_at or now
    made = _new(job, sign, f"{given_up.key}#2", began, now)
    return tx.runs.begin_elsewhere(replace(made, note=f"the late end of run {short(given_up.id)}"), began)


def _new(job: Job, sign: Sign, key: str | None, began: datetime, now: datetime) -> NewRun:
    return new_run(job, Cause.API, now, key, occurrence_of(job, began), author=sign.author)


def _settlement(run: Run, fate: Fate, ended: datetime, took: float | None) -> Settlement:
    reasons = {Status.COMPLETED: None, Status.FAILED: fate.outcome}
    return Settlement(
        run=run.id,
        job=run.job,
        lock=run.lock,
        node=ELSEWHERE,
        fence=run.fence,
        status=fate.status,
        attempt_outcome=fate.outcome,
        reason=reasons.get(fate.status, fate.error),
        failures=run.failures + (fate.status is Status.FAILED),
        lost=run.lost + (fate.outcome == FailReason.LOST),
        error=fate.error,
        exit_code=fate.exit_code,
        ended=max(ended, run.started_at or ended),
        took=took,
    )


def _keep_text(tx: Transaction, run: Run, sign: Sign, *, complete: bool) -> None:
    """After what it told before; the last LONGEST_TEXT bytes of it all."""
    before, omitted = tx.runs.told(run.id)
    if not (sign.text or before):
        return
    gap = b"" if not before or not sign.text or before.endswith(b"\n") or sign.omitted else b"\n"
    whole = sign.text if sign.omitted else before + gap + sign.text
    if sign.omitted:
        omitted += len(before) + sign.omitted
    cut = max(0, len(whole) - LONGEST_TEXT)
    tx.runs.put_output([Output(run.id, 1, b"", whole[cut:], omitted + cut, complete)])
