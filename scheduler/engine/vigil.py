"""The vigil: notices that a deadline has passed, and stores it once over all nodes, back-dated to that deadline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from scheduler.core.execution import Bus
from scheduler.core.job import Configuration, Job
from scheduler.core.look import Look
from scheduler.core.model import FailReason, JobState
from scheduler.core.ports import Store, Transaction
from scheduler.core.state import Flip, State, Unwatched, Why, forgiven_until, unheard
from scheduler.engine.flips import Flipped, doubt, publish_flips, store_flips
from scheduler.engine.in_force import InForce
from scheduler.engine.unwatched import EVERY, KEY, WatchLog, look, read_log

PATIENCE = timedelta(seconds=0.25)
"""After a deadline: what ended in the last moment before it is being written down."""
BATCH = 500
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class Vigil:
    """Judges the jobs that this node has loaded as they are in force; also while it stands aside, because then nothing
    is planned, and that must not be silent."""

    def __init__(self, store: Store, in_force: InForce, bus: Bus) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._log: WatchLog | None = None
        self._next: datetime | None = None

    def tick(self, now: datetime) -> int:
        """Stores what passed; how many jobs have missed their deadline. Raises Unavailable when the database is away:
        the first turn after that finds that nobody watched meanwhile."""
        stretches = self._watch(now)
        until = now - PATIENCE
        passed: Sequence[JobState] = ()
        with self._store.read() as tx:
            following = tx.jobs.next_deadline(_EARLIEST)
            if following is not None and following <= until:
                passed = tx.jobs.passed(until)
                following = tx.jobs.next_deadline(until)
        self._next = None if following is None else following + PATIENCE
        missed = 0
        for start in range(0, len(passed), BATCH):
            missed += self._judge_all(passed[start : start + BATCH], stretches, now)
        return missed

    def rests(self, look: Look) -> bool:
        """No deadline has passed, and it is written down that somebody watches."""
        following = look.next_deadline
        if following is not None and following <= look.now - PATIENCE:
            return False
        text = look.values.get(KEY)
        if self._log is None or self._log.text != text:
            self._log = read_log(text)
        self._next = None if following is None else following + PATIENCE
        return self._log.at is not None and timedelta(0) <= look.now - self._log.at < EVERY

    def next_due(self) -> datetime | None:
        """When the next deadline will have passed, as far as the last turn knew."""
        return self._next

    def _watch(self, now: datetime) -> tuple[Unwatched, ...]:
        """Writes down now and then that somebody watches; when nobody did."""
        log = self._log
        if log is None or log.at is None or not timedelta(0) <= now - log.at < EVERY:
            with self._store.begin() as tx:
                self._log = log = look(tx, now, log)
        return log.stretches

    def _judge_all(self, passed: Sequence[JobState], stretches: tuple[Unwatched, ...], now: datetime) -> int:
        loaded = self._in_force.current
        jobs = loaded.configuration.jobs
        known = [(jobs[one.name], one) for one in passed if one.name in jobs and one.generation <= loaded.generation]
        if not known:
            return 0
        with self._store.begin() as tx:
            deaf = _unheard(tx, known, stretches)
            heard = [(job, one) for job, one in known if job.name not in deaf]
            doubtful = doubt(
                tx, deaf, "word of it may have been lost while no daemon listened", loaded.configuration, now
            )
            missed = _judge(tx, heard, stretches, loaded.configuration, now)
        publish_flips(self._bus, doubtful)
        publish_flips(self._bus, missed)
        return len(missed.flips)


def _unheard(
    tx: Transaction, passed: Sequence[tuple[Job, JobState]], stretches: tuple[Unwatched, ...]
) -> dict[str, datetime]:
    """The external jobs whose success may have been told while nobody listened, and until when that was so."""
    found = {}
    for job, one in passed:
        if job.external and one.deadline_at is not None:
            until = unheard(one.deadline_at, job.watch.grace, stretches)
            if until is not None and not _heard_since(tx, job, one.deadline_at - job.watch.grace, until):
                found[job.name] = until
    return found


def _heard_since(tx: Transaction, job: Job, instant: datetime, until: datetime) -> bool:
    """The job's newest run is of that instant, and began after `until`, or told after that how it ended: no success of
    it was lost before. What was given up told nothing."""
    run = tx.runs.latest_elsewhere(job.name)
    if run is None or run.scheduled_for != instant:
        return False
    ended = run.status.final and run.reason not in (FailReason.LOST, FailReason.TIMEOUT)
    at = run.finished_at if ended else run.started_at
    return at is not None and at >= until


def _judge(
    tx: Transaction,
    passed: Sequence[tuple[Job, JobState]],
    stretches: tuple[Unwatched, ...],
    configuration: Configuration,
    now: datetime,
) -> Flipped:
    waiting = _still_owed(tx, [pair for pair in passed if _may_wait(*pair, stretches, now)], now)
    flips = [
        Flip(job.name, State(one.state), State.MISSED, one.deadline_at, Why.DEADLINE, deadline=one.deadline_at)
        for job, one in passed
        if job.name not in waiting and one.deadline_at is not None
    ]
    return store_flips(tx, flips, configuration, now)


def _may_wait(job: Job, state: JobState, stretches: tuple[Unwatched, ...], now: datetime) -> bool:
    if state.deadline_at is None:
        return False
    forgiven = forgiven_until(state.deadline_at, job.watch.grace, stretches)
    return forgiven is not None and now < forgiven


def _still_owed(tx: Transaction, passed: Sequence[tuple[Job, JobState]], now: datetime) -> set[str]:
    """Of jobs whose deadline passed while nobody watched: those of which something is still to be planned, or is not
    over. What was decided against is over."""
    unplanned = {job.name for job, one in passed if one.next_due_at is not None and one.next_due_at <= now}
    planned = [job.name for job, _ in passed if job.name not in unplanned]
    return unplanned | ({one.job for one in tx.runs.unfinished(planned)} if planned else set())
