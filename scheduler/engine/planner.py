"""The planner: turns owed instants into runs and skips, and moves `next_due_at`, in one transaction per batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Bus
from scheduler.core.job import Configuration, Job
from scheduler.core.look import Look
from scheduler.core.model import JobState, NewRun, Skip, SkipReason
from scheduler.core.policy import Plan, PlannedRun, plan
from scheduler.core.ports import Store, Transaction
from scheduler.core.requests import Advance, Claim, Claimed, Due
from scheduler.core.stamp import to_text
from scheduler.engine.deadlines import refresh_deadlines
from scheduler.engine.in_force import InForce, Loaded
from scheduler.engine.new_run import new_run
from scheduler.engine.turns import Turns

log = structlog.get_logger("engine")

BATCH = 500
"""Jobs of a turn's first transaction: what can start, starts soon."""
GROWTH = 4
"""Up to so many times as many in the following ones: bounds how long one holds the database, to some tenths of a
second. Between two of them others write, and what is owed waits for that."""
HEARING = timedelta(milliseconds=200)
"""In this time a daemon that is not overloaded hears of, and writes down, what has ended."""

REMEMBER = timedelta(seconds=5)
"""For so long it is remembered what was left: another node has planned it since, or holds it no more."""

Owed = tuple[str, datetime | None]
"""A job, and since when it owes something."""
Doubted = dict[Owed, datetime]
"""What was left, and since when."""

Planned = list[tuple[Due, Plan]]
"""What jobs owed, and what becomes of it."""


class Planner:
    """`claim` says what this node could run right now (None: nothing); `hand_over` gets each claim back, with what was
    claimed (None: nobody knows, the transaction failed); `amend` gives what the ledger says of a job as this node knows
    it better; `again` asks for a tick HEARING later; `turns` remembers when all was planned last.

    What would be skipped because a run is in the way is left for HEARING: that run may have ended before, and nobody
    has heard of it yet. What starts does not wait for that."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        bus: Bus,
        node: Callable[[], str],
        claim: Callable[[], Claim | None],
        hand_over: Callable[[Claim, Claimed | None], None],
        amend: Callable[[Due, datetime], Due],
        again: Callable[[], None],
        turns: Turns,
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._node = node
        self._claim = claim
        self._hand_over = hand_over
        self._amend = amend
        self._again = again
        self._turns = turns
        self._doubts: Doubted = {}
        self._ahead: datetime | None = None

    def tick(self, now: datetime) -> int:
        """Plans everything owed at `now`; the number of jobs judged."""
        self._turns.begin(now)
        judged, whole = 0, True
        doubts = _Doubts(self._doubts, now)
        self._ahead = due = self.next_due()
        if due is not None and due <= now:
            judged, whole = self._plan_all(now, doubts)
            self._ahead = self.next_due()
        self._doubts = doubts.left | doubts.unseen
        if doubts.fresh or (self._ahead is not None and self._ahead <= now):
            self._again()  # For what was left, and for what another node held just now.
        elif whole and not doubts.left:
            self._turns.end()
        return judged

    def _plan_all(self, now: datetime, doubts: _Doubts) -> tuple[int, bool]:
        """The number of jobs that were judged, and whether they are all."""
        total, size = 0, BATCH
        while True:
            if self._in_force.behind is not None:
                self._turns.fail(f"this node stood aside: {self._in_force.behind}")
                return total, False
            judged, alone = self._batch(now, doubts, size)
            if judged is None:
                self._turns.fail("this node was leaving, or had been declared dead")
                return total, False
            total += judged
            if judged < (BATCH if alone else size):
                return total, True
            size = BATCH if alone else min(2 * size, GROWTH * BATCH)

    def rests(self, look: Look) -> bool:
        """Nothing is owed."""
        if look.next_due is not None and look.next_due <= look.now:
            return False
        self._turns.begin(look.now)
        self._turns.end()
        self._ahead = look.next_due
        return True

    def ahead(self) -> datetime | None:
        """When there will be something to do next, as far as the last turn knew."""
        return self._ahead

    def next_due(self) -> datetime | None:
        """When there will be something to do next."""
        with self._store.read() as tx:
            return tx.jobs.next_due(self._in_force.current.generation)

    def _batch(self, now: datetime, doubts: _Doubts, size: int) -> tuple[int | None, bool]:
        """How many jobs were judged (None: this node may not plan), and whether each was alone."""
        try:
            return self._plan_together(now, doubts, size), False
        except Unavailable:
            raise
        except Exception:
            log.exception("batch_failed", retry="each job alone")
            return self._plan_one_by_one(now), True

    def _plan_together(self, now: datetime, doubts: _Doubts, size: int) -> int | None:
        loaded = self._in_force.current
        claim: Claim | None = None
        claimed = Claimed()
        try:
            with self._store.begin() as tx:
                if not tx.nodes.hold(self._node()):
                    return None
                due = [
                    one
                    for one in tx.jobs.due(now, loaded.generation, size + len(doubts.left))
                    if _instant(one) not in doubts.left
                ]
                judged = [(one, self._judge(loaded.configuration, one, now)) for one in due]
                planned = [one for one in judged if doubts.settled(one)]
                if planned:
                    apply_plans(tx, loaded.configuration, planned, now)
                    claim = self._claim()
                if claim is not None:
                    claimed = tx.runs.claim(replace(claim, skip_busy_queues=True, held=True), now)
        except BaseException:
            if claim is not None:
                self._hand_over(claim, None)
            raise
        announce(self._bus, planned)
        if claim is not None:
            self._hand_over(claim, claimed)
        return len(due)

    def _plan_one_by_one(self, now: datetime) -> int:
        """After a batch that failed: whatever is wrong with one job disables that job, with an alarm."""
        loaded = self._in_force.current
        with self._store.begin() as tx:
            names = [one.state.name for one in tx.jobs.due(now, loaded.generation, BATCH)]
        for name in names:
            try:
                self._plan_alone(name, loaded, now)
            except Unavailable:
                raise
            except Exception as error:
                alarm = f"planning failed: {type(error).__name__}: {error}"
                log.exception("job_disabled", job_name=name)
                with self._store.begin() as tx:
                    tx.jobs.set_alarm(name, alarm, enabled=False)
                self._bus.publish("job.disabled", job=name, reason=alarm)
        return len(names)

    def _plan_alone(self, name: str, loaded: Loaded, now: datetime) -> None:
        with self._store.begin() as tx:
            state = tx.jobs.states([name], lock=True).get(name) if tx.nodes.hold(self._node()) else None
            if state is None or not _is_due(state, loaded.generation, now):
                return
            planned = [
                (due, self._judge(loaded.configuration, due, now))
                for due in tx.jobs.context([name], state.next_due_at or now)
            ]
            apply_plans(tx, loaded.configuration, planned, now)
        announce(self._bus, planned)

    def _judge(self, configuration: Configuration, due: Due, now: datetime) -> Plan:
        return self._turns.explain(plan(configuration.jobs[due.state.name], self._amend(due, now), now))


class _Doubts:
    """What is left in a tick: what was left less than HEARING ago, and what comes to be. What was left longer ago may
    not be seen, because another node holds it just then: it is `unseen`, and judged when it is seen again."""

    def __init__(self, before: Doubted, now: datetime) -> None:
        self._now = now
        self.left = {one: since for one, since in before.items() if since <= now < since + HEARING}
        self.unseen = {one: since for one, since in before.items() if one not in self.left and now < since + REMEMBER}
        self.fresh = False

    def settled(self, one: tuple[Due, Plan]) -> bool:
        """Whether this may be planned; else its job is left."""
        due, plan = one
        if self.unseen.pop(_instant(due), None) is not None or not _in_the_way(plan):
            return True
        self.left[_instant(due)] = self._now
        self.fresh = True
        return False


def _instant(due: Due) -> Owed:
    return due.state.name, due.state.next_due_at


def _in_the_way(one: Plan) -> bool:
    """Whether an instant would be skipped because a run is unfinished."""
    return any(isinstance(entry, Skip) and entry.reason is SkipReason.OVERLAP for entry in one.entries)


def _is_due(state: JobState, generation: int, now: datetime) -> bool:
    """What `Jobs.due` asks, of one job whose row is locked."""
    present = state.enabled and state.removed_at is None and state.generation <= generation
    return present and state.next_due_at is not None and state.next_due_at <= now


def apply_plans(tx: Transaction, configuration: Configuration, planned: Planned, now: datetime) -> None:
    """Writes judged plans of jobs whose rows this transaction has held since it read what was judged: entries that
    somebody wrote first change nothing, `next_due_at` moves by compare-and-set."""
    moves = [
        Advance(due.state.name, due.state.next_due_at, plan.next_due_at)
        for due, plan in planned
        if due.state.next_due_at is not None and plan.next_due_at != due.state.next_due_at
    ]
    moved = tx.jobs.advance(moves)
    live = [(due, plan) for due, plan in planned if due.state.name in moved]
    give_up = [run for _, plan in live for run in plan.give_up]
    if give_up:
        tx.runs.skip_waiting(give_up, str(SkipReason.LOCK), now)
    cancel = [run for _, plan in live for run in plan.cancel]
    if cancel:
        tx.runs.request_cancel(cancel, "replaced by the next occurrence", now)
    write_entries(tx, [(configuration.jobs[due.state.name], due, plan) for due, plan in live], now)
    skipped = [due.state.name for due, plan in live if any(isinstance(entry, Skip) for entry in plan.entries)]
    if skipped:
        refresh_deadlines(tx, [configuration.jobs[name] for name in skipped], now)


def write_entries(tx: Transaction, plans: list[tuple[Job, Due, Plan]], now: datetime) -> None:
    """Runs and skips of each job in the order of their instants, in as few statements as that order allows."""
    stretches = [(job, [list(group) for _, group in groupby(one.entries, type)]) for job, _, one in plans]
    known = {job.name: due for job, due, _ in plans}
    for turn in range(max((len(groups) for _, groups in stretches), default=0)):
        skips: list[Skip] = []
        runs: list[NewRun] = []
        for job, groups in stretches:
            for entry in groups[turn] if turn < len(groups) else ():
                if isinstance(entry, Skip):
                    skips.append(entry)
                else:
                    runs.append(occurrence(job, entry, now))
        tx.runs.skip(skips)
        known |= {one.job: replace(known[one.job], open_skip=True) for one in skips}
        tx.runs.insert(runs, known)


def occurrence(job: Job, entry: PlannedRun, now: datetime) -> NewRun:
    """The run of one instant of a schedule."""
    return new_run(job, entry.cause, now, f"at:{to_text(entry.instant)}", entry.instant)


def announce(bus: Bus, planned: Planned) -> None:
    for due, one in planned:
        for entry in one.entries:
            if isinstance(entry, Skip):
                bus.publish(
                    "run.skipped",
                    job=entry.job,
                    reason=str(entry.reason),
                    first=entry.first,
                    last=entry.last,
                    count=entry.count,
                    detail=entry.detail,
                )
            else:
                bus.publish("run.planned", job=due.state.name, scheduled_for=entry.instant, cause=str(entry.cause))
        for run in one.cancel:
            bus.publish("run.cancel_asked", run=run, job=due.state.name, author="", reason="replaced")
        if one.give_up:
            bus.publish(
                "run.skipped",
                job=due.state.name,
                reason=str(SkipReason.LOCK),
                count=len(one.give_up),
                detail="waited for its lock until the next occurrence",
            )
