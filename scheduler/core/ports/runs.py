"""Runs in the store: from their insertion to their pruning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from scheduler.core.job import Job
from scheduler.core.model import NewRun, Output, Run, Skip, WaitsFor
from scheduler.core.requests import Claim, Claimed, Due, Leftover, Promoted, Report, Settled, Settlement, Unfinished


class Runs(Protocol):
    def insert(self, runs: Sequence[NewRun], known: Mapping[str, Due] | None = None) -> set[str]:
        """Inserts them in this order; the ids that are new. One whose (job, key) exists changes nothing. `known`: jobs
        whose rows this transaction has held since it read this of them, by name; of others the store asks."""
        ...

    def place(self, runs: Sequence[NewRun]) -> dict[str, WaitsFor | None]:
        """The same; the new ones with what each waits for (None: nothing but a place)."""
        ...

    def skip(self, skips: Sequence[Skip], *, apart: bool = False) -> None:
        """Records instants that will not run. A skip that follows directly on the job's last entry, with the same
        reason and blocker, extends that row. `apart`: they lie somewhere in the past; each is a row of its own, and
        none of their jobs' rows is extended any more."""
        ...

    def skip_waiting(self, runs: Collection[str], reason: str, now: datetime) -> set[str]:
        """PENDING runs that never started → SKIPPED(reason)."""
        ...

    def claim(self, claim: Claim, now: datetime) -> Claimed:
        """PENDING → RUNNING with the node's name and a new fence: by queue, within it priority, then age; only runs
        whose lock is free, one per lock; only while the node is not dead; settles concurrency and tokens."""
        ...

    def promote(self, now: datetime, after: str | None = "") -> Promoted:
        """Lets runs whose time, lock or pause is over compete again. Of the locks that runs wait for it looks at those
        of the runs that moved, and at a thousand further ones in their order, from `after` on (None: at none)."""
        ...

    def settle(self, settlements: Sequence[Settlement], now: datetime, *, orphans: bool = False) -> Settled:
        """Applies those whose run is still RUNNING under that node and fence, frees their locks. A stale holder changes
        nothing: the nodes must not be dead. With `orphans` it is the other way round: the nodes must be dead or
        stopped. A run that somebody asked to cancel after this was decided is CANCELED instead of PENDING. What is
        PENDING has the queue, priority and lock that its job has by now."""
        ...

    def hold_for(self, settlements: Sequence[Settlement]) -> None:
        """Locks what `settle` locks before the runs: for a transaction that writes to these runs (`report`) before it
        settles them."""
        ...

    def running(self, node: str) -> list[Run]: ...

    def orphaned(self, limit: int) -> list[Run]:
        """RUNNING runs of nodes that are dead or stopped."""
        ...

    def begin_elsewhere(self, run: NewRun, began: datetime) -> Run | None:
        """A run that is RUNNING since `began` where no node holds it, without lock and queue. None, and nothing
        changed: there is a run with that (job, key)."""
        ...

    def elsewhere(self, job: str | None = None) -> list[Run]:
        """The RUNNING ones of those, of that job or of all, oldest first."""
        ...

    def latest_elsewhere(self, job: str) -> Run | None:
        """The youngest one of that job, whatever became of it."""
        ...

    def told(self, run: str) -> tuple[bytes, int]:
        """What is kept of what such a run printed, and how many bytes before that were left out."""
        ...

    def request_cancel(self, runs: Collection[str], why: str, now: datetime) -> set[str]:
        """RUNNING: asks its node; PENDING: CANCELED at once. The ids concerned."""
        ...

    def hasten(self, run: str, why: str, now: datetime) -> bool:
        """A waiting run need not wait for the time of its next attempt any longer; `why` is added to its note. False:
        it waits for something else, and goes on waiting (or, and nothing changed, it does not wait)."""
        ...

    def discard(self, runs: Collection[str], now: datetime) -> set[str]:
        """Dead letters that nobody needs any more; the ids of those that were. Inserting a run with `retry_of` does
        the same to the run it names."""
        ...

    def dead_before(self, runs: Sequence[Run], most: int) -> dict[str, list[str]]:
        """For each of these runs that has a rank: the ids of the events whose runs are dead letters in the same line
        before it, the oldest first, of each line the newest `most`; those without any are left out."""
        ...

    def cancel_requests(self, node: str) -> dict[str, str]:
        """Runs of the node that should end, and why."""
        ...

    def report(self, reports: Sequence[Report]) -> None:
        """What a stale holder says changes nothing. Locks the runs: whoever settles them in the same transaction calls
        `hold_for` first."""
        ...

    def put_output(self, outputs: Sequence[Output], runs: Collection[Run] = ()) -> None:
        """Inserts or replaces; an attempt that is over and has written nothing needs no row. Of `runs` the caller knows
        that they are there; output of any other run that is not there (any more) is left out."""
        ...

    def get(self, run: str) -> Run | None: ...

    def by_key(self, job: str, key: str) -> Run | None: ...

    def by_keys(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], Run]:
        """By (job, key), with payloads."""
        ...

    def typical(self, job: str) -> float | None:
        """How many seconds the last completed runs of a job were at work, on average; None if there are none."""
        ...

    def unfinished(self, jobs: Collection[str]) -> list[Unfinished]: ...

    def replaceable(self, job: str) -> list[str]:
        """The unfinished runs that somebody who wants the job to run now means to be rid of: all that run, and all that
        wait, but for those with a payload that was not handed in by hand."""
        ...

    def drop_pending(self, job: str, now: datetime) -> tuple[int, int]:
        """For a removed job: its waiting payload runs → FAILED(job_removed), all other waiting runs → CANCELED; the
        numbers of (canceled, failed) ones."""
        ...

    def give_up(self, runs: Collection[str], error: str, now: datetime) -> set[str]:
        """PENDING runs with a payload → FAILED(job_removed), dead letters that `error` explains; the ids of those that
        were."""
        ...

    def pending_counts(self, jobs: Collection[str]) -> dict[str, Leftover]:
        """Every waiting run of these jobs, by its kind; jobs without any are left out."""
        ...

    def redefine(self, job: Job) -> int:
        """Gives the waiting runs of a job whose row is locked its queue, priority and lock; the number that changed."""
        ...

    def shift_clock(self, step: timedelta, now: datetime) -> None:
        """Moves everything stored in clock time (not_before, refill times) by `step`."""
        ...

    def prunable(self, rules: Mapping[str, tuple[timedelta | int, timedelta]], now: datetime) -> list[str]:
        """Those of these jobs of which `prune` may find something to delete, by name: almost always none, in few
        statements. `rules`: its `keep` and `keep_output`, by job."""
        ...

    def prune(self, job: str, keep: timedelta | int, keep_output: timedelta, now: datetime, limit: int) -> int:
        """Deletes old finished runs, skips and outputs of one job into day summaries, moves `pruned_before`; the number
        of rows, `limit` at most. Never unfinished runs, dead letters, the last success and failure."""
        ...
