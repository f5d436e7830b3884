"""The desk: what people and programs ask of the daemon (core.commands.Commands), each request one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from scheduler.core.commands import Acked, AuditReport, Backfilled, Deliver, Reloaded, RunRequest
from scheduler.core.errors import InvalidInput, Refused, SchedulerError
from scheduler.core.execution import Bus
from scheduler.core.ids import short
from scheduler.core.job import Job
from scheduler.core.model import ELSEWHERE, Cause, Pause, Run
from scheduler.core.ports import Store, Transaction, Writing
from scheduler.core.queries import Readable
from scheduler.core.state import Why
from scheduler.engine.acknowledge import acknowledge
from scheduler.engine.arrivals import hold_newest
from scheduler.engine.audit import OVERDUE, audit
from scheduler.engine.backfill import choose, make
from scheduler.engine.fan_out import LoadFirst
from scheduler.engine.find import find_run, no_job, stored_run
from scheduler.engine.flips import Flipped, amend_deadlines, publish_flips
from scheduler.engine.in_force import InForce
from scheduler.engine.intake import Intake
from scheduler.engine.reload import Reloader
from scheduler.engine.retry import retry, retry_each

T = TypeVar("T")

AUDIT_PERIOD = timedelta(hours=24)
TOGETHER = 100
"""Runs that are retried in one transaction."""
LETTERS = 10_000
"""Dead letters of a job that are discarded at once."""


class Desk:
    """`wake` asks the worker to look soon."""

    def __init__(
        self,
        store: Store,
        readable: Readable,
        in_force: InForce,
        reloader: Reloader,
        bus: Bus,
        wake: Callable[[], None],
        intake: Intake,
    ) -> None:
        self._store = store
        self._readable = readable
        self._in_force = in_force
        self._reloader = reloader
        self._bus = bus
        self._wake = wake
        self._intake = intake

    def submit(self, requests: Sequence[RunRequest], ticket: Any, deliver: Deliver) -> None:
        self._intake.submit(requests, ticket, deliver)

    def cancel(self, run: str, *, author: str, reason: str = "") -> Run:
        why = f"canceled by {author}" + (f": {reason}" if reason else "")
        with self._store.begin() as tx:
            before = stored_run(tx, run)
            if before.node == ELSEWHERE and not before.status.final:
                raise Refused(
                    f"run {short(run)} is not on any node of ours: {before.job} runs somewhere else",
                    hint="end it there; what tells no end fails after the job's `timeout`",
                )
            if before.status.final or not tx.runs.request_cancel([run], why, tx.now):
                raise Refused(
                    f"run {short(run)} is over: {before.status}", hint=f"to run it again: schedctl retry {short(run)}"
                )
            after = stored_run(tx, run)
        self._wake()
        self._bus.publish("run.cancel_asked", run=run, job=after.job, author=author, reason=reason)
        return after

    def retry(self, run: str, *, author: str, reason: str = "") -> Run:
        result = self._write(lambda tx: retry(tx, run, self._job, reason, author, tx.now))
        self._announce_retries([result], author)
        return result

    def retry_all(
        self, runs: Sequence[str], *, author: str, reason: str = ""
    ) -> list[tuple[str, Run | SchedulerError]]:
        def some(runs: Sequence[str], tx: Writing) -> list[tuple[str, Run | SchedulerError]]:
            return retry_each(tx, tx.now, runs=runs, job_of=self._job, reason=reason, author=author)

        done: list[tuple[str, Run | SchedulerError]] = []
        for start in range(0, len(runs), TOGETHER):
            done += self._write(partial(some, runs[start : start + TOGETHER]))
        self._announce_retries([run for _, run in done if isinstance(run, Run)], author)
        return done

    def _announce_retries(self, runs: Sequence[Run], author: str) -> None:
        self._wake()
        for run in runs:
            self._bus.publish("run.planned", run=run.id, job=run.job, cause=str(run.cause), author=author)

    def pause(self, jobs: Collection[str], *, until: datetime | None, reason: str, author: str) -> list[Pause]:
        def keep(tx: Writing) -> tuple[list[Pause], Flipped]:
            now, definitions = tx.now, [self._job(name) for name in jobs]
            if until is not None and until <= now:
                raise Refused("the pause would end before it begins", hint="give a time to come")
            pauses = [Pause(job.name, now, until, reason, author) for job in definitions]
            tx.jobs.states(jobs, lock=True)
            tx.jobs.resume(jobs, now)
            tx.jobs.pause(pauses)
            return pauses, self._amended(tx, definitions, now)

        pauses, flipped = self._write(keep)
        publish_flips(self._bus, flipped)
        for pause in pauses:
            self._bus.publish("job.paused", job=pause.job, until=until, reason=reason, author=author)
        return pauses

    def resume(self, jobs: Collection[str], *, author: str) -> list[str]:
        def lift(tx: Writing) -> tuple[list[str], Flipped]:
            now, definitions = tx.now, [self._job(name) for name in jobs]
            tx.jobs.states(jobs, lock=True)
            return sorted(tx.jobs.resume(jobs, now)), self._amended(tx, definitions, now)

        resumed, flipped = self._write(lift)
        publish_flips(self._bus, flipped)
        self._wake()
        for name in resumed:
            self._bus.publish("job.resumed", job=name, author=author)
        return resumed

    def ack(self, job: str, *, reason: str, author: str) -> Acked:
        def keep(tx: Writing) -> tuple[Acked, Flipped]:
            definition = self._job(job)
            state = tx.jobs.states([job], lock=True)[job]
            configuration = self._in_force.current.configuration
            ack, flipped = acknowledge(tx, definition, state, reason, author, configuration, tx.now)
            return Acked(ack, tx.jobs.states([job])[job].deadline_at), flipped

        acked, flipped = self._write(keep)
        publish_flips(self._bus, flipped)
        self._bus.publish("job.acknowledged", job=job, first=acked.ack.first, reason=reason, author=author)
        return acked

    def _amended(self, tx: Transaction, definitions: list[Job], now: datetime) -> Flipped:
        return amend_deadlines(tx, definitions, now, Why.CHANGE, self._in_force.current.configuration)

    def backfill(
        self, job: str, first: datetime | None, last: datetime, *, most: int, dry_run: bool, reason: str, author: str
    ) -> Backfilled:
        def fill(tx: Writing) -> Backfilled:
            now, definition = tx.now, self._job(job)
            chosen = choose(tx, definition, tx.jobs.states([job], lock=True)[job], first, last, most, now)
            if dry_run:
                return chosen
            if not chosen.instants:
                raise Refused(f"{job}: nothing to backfill: {_reasons(chosen)}", hint=f"schedctl runs {job}")
            return replace(chosen, runs=make(tx, definition, chosen, reason, author, now))

        filled = self._write(fill)
        if filled.runs:
            self._wake()
        for run, instant in zip(filled.runs, filled.instants, strict=False):
            cause = str(Cause.BACKFILL)
            self._bus.publish("run.planned", run=run, job=job, scheduled_for=instant, cause=cause, author=author)
        return filled

    def discard(self, runs: Collection[str], job: str | None, *, author: str) -> list[str]:
        wanted = set(runs)
        with self._readable.queries() as queries:
            if job is not None:
                page = queries.dead_letters(job, limit=LETTERS)
                wanted |= {entry.run.id for entry in page.entries if entry.run is not None}
        with self._store.begin() as tx:
            gone = sorted(tx.runs.discard(wanted, tx.now))
        if gone:
            self._bus.publish("letters.discarded", count=len(gone), job=job, author=author)
        return gone

    def take_token(self, queue: str) -> float | None:
        with self._store.begin() as tx:
            return tx.queues.take(queue, tx.now)

    def reload(
        self, *, author: str, drop_pending: bool = False, if_hash: str | None = None, dry_run: bool = False
    ) -> Reloaded:
        return self._reloader.reload(author=author, drop_pending=drop_pending, if_hash=if_hash, dry_run=dry_run)

    def audit(self, *, since: datetime | None = None, job: str | None = None) -> AuditReport:
        if job is not None:
            with self._store.read() as tx:
                if job not in tx.jobs.states([job]):
                    self._job(job)
        until = self._store.now() - OVERDUE
        if since is not None and since >= until:
            raise InvalidInput(
                "`since` is too late: what was due a minute ago and earlier can be audited",
                hint="give an earlier instant",
            )
        return audit(self._store, since or until + OVERDUE - AUDIT_PERIOD, until, job)

    def find_run(self, text: str) -> str:
        with self._readable.queries() as queries:
            return find_run(queries, text, self._in_force.current.configuration.jobs)

    def _write(self, work: Callable[[Writing], T]) -> T:
        """`work` in a transaction in which the newest configuration is, and stays, the one that this node works with: a
        run gets its queue and its lock from that. Unavailable if this node cannot load it."""
        try:
            return self._write_as_loaded(work)
        except LoadFirst:
            self._reloader.follow(self._store.now())
            return self._write_as_loaded(work)

    def _write_as_loaded(self, work: Callable[[Writing], T]) -> T:
        with self._store.begin() as tx:
            hold_newest(tx, self._in_force)
            return work(tx)

    def _job(self, name: str) -> Job:
        job = self._in_force.job(name)
        if job is None:
            raise no_job(name, self._in_force.current.configuration.jobs)
        return job


def _reasons(chosen: Backfilled) -> str:
    counts = Counter(one.why for one in chosen.left_out)
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items())) or "no instant lies in that time"
