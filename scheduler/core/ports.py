"""The store as the rest of the product sees it. Siblings know each other only through the seams in this package;
app.py joins them.

A `Transaction` is one database transaction; its groups are its verbs. Every write is compare-and-set and says
whether it took place. All transactions lock rows in one order: node, generation, queue, job, lock, run.
`now` is always the caller's instant (database time on PostgreSQL), read once per tick.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from scheduler.core.access import Tokens
from scheduler.core.job import Job, Queue
from scheduler.core.model import (
    Ack,
    Generation,
    JobState,
    Json,
    NewRun,
    Node,
    Output,
    Pause,
    Run,
    ScheduleVersion,
    Skip,
    Status,
    WaitsFor,
)
from scheduler.core.requests import Advance, Claim, Due, Leftover, Report, Settlement, Unfinished


class Nodes(Protocol):
    def hold(self, node: str) -> bool:
        """Locks the node's row until the transaction ends. False: it is not live; it must not plan or claim."""
        ...

    def register(self, node: Node, now: datetime) -> None: ...

    def renew(self, node: str, now: datetime, *, generation: int, clock_offset: float = 0.0) -> bool:
        """Raises the beat. False: this node was declared dead or stopped; it holds nothing any more."""
        ...

    def mark(self, node: str, state: str, now: datetime) -> bool:
        """live → stopping → stopped. False if it is dead already."""
        ...

    def declare_dead(self, node: str, beat: int, now: datetime) -> bool:
        """True if its beat is still `beat` and it was not stopped: from now on it holds nothing."""
        ...

    def all(self) -> list[Node]: ...

    def prune(self, before: datetime) -> int: ...


class Generations(Protocol):
    def newest(self, *, lock: bool = False) -> Generation | None: ...

    def newest_id(self) -> int: ...

    def get(self, number: int) -> Generation | None: ...

    def find(self, digest: str) -> Generation | None:
        """The newest generation with that hash."""
        ...

    def add(self, digest: str, files: Mapping[str, str], now: datetime, author: str) -> Generation: ...

    def put_queues(self, queues: Iterable[Queue], now: datetime) -> None:
        """Makes the queue rows equal to these; tokens are kept (at most the burst)."""
        ...

    def value(self, key: str) -> str | None:
        """A named value of the installation: environment, oldest release, last clean audit, clock steps."""
        ...

    def set_value(self, key: str, value: str) -> None: ...

    def swap_value(self, key: str, old: str | None, new: str) -> bool:
        """Compare-and-set; `old` None: it must be absent."""
        ...


class Jobs(Protocol):
    def states(self, names: Collection[str] | None = None, *, lock: bool = False) -> dict[str, JobState]: ...

    def due(self, now: datetime, generation: int, limit: int) -> list[Due]:
        """Enabled, present jobs with `next_due_at <= now` not changed after `generation`, most overdue first, rows
        locked (PostgreSQL: rows that somebody holds are passed over)."""
        ...

    def hold(self, names: Collection[str]) -> None:
        """Nobody changes or removes these jobs until the transaction ends; claims go on."""
        ...

    def context(self, names: Collection[str], since: datetime) -> list[Due]:
        """The same view of given jobs (no lock), with pauses that end after `since`."""
        ...

    def next_due(self, generation: int) -> datetime | None:
        """The earliest `next_due_at`: when the planner must look again."""
        ...

    def put(self, states: Iterable[tuple[JobState, str]]) -> None:
        """Inserts or replaces job rows; the text is the job's definition as JSON."""
        ...

    def followers(self, jobs: Collection[str]) -> dict[str, Mapping[str, Json]]:
        """The definitions of the present, enabled jobs that run after one of these, by name. Looks at every job."""
        ...

    def advance(self, moves: Sequence[Advance]) -> set[str]:
        """The jobs that moved."""
        ...

    def set_alarm(self, job: str, alarm: str | None, *, enabled: bool) -> None: ...

    def set_deadlines(self, deadlines: Mapping[str, datetime | None]) -> None: ...

    def versions(self, since: datetime, job: str | None = None) -> list[ScheduleVersion]:
        """Schedule versions valid at some time after `since`, by job and `valid_from`."""
        ...

    def open_versions(self, versions: Iterable[ScheduleVersion]) -> None: ...

    def close_versions(self, jobs: Collection[str], at: datetime) -> None: ...

    def pauses(self, jobs: Collection[str] | None, since: datetime) -> list[Pause]:
        """Pauses that end after `since`, by start."""
        ...

    def ack(self, ack: Ack, *, settled: datetime) -> None:
        """Keeps it, and forgets those of the job that end before `settled`."""
        ...

    def acks(self, jobs: Collection[str], since: datetime) -> list[Ack]:
        """Those that reach past `since`, by their beginning."""
        ...

    def pause(self, pauses: Iterable[Pause]) -> None: ...

    def resume(self, jobs: Collection[str], now: datetime) -> set[str]:
        """Ends the pauses in force (and drops those to come); the jobs that had one."""
        ...


class Runs(Protocol):
    def insert(self, runs: Sequence[NewRun]) -> set[str]:
        """Inserts them in this order; the ids that are new. One whose (job, key) exists changes nothing."""
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

    def claim(self, claim: Claim, now: datetime) -> list[Run]:
        """PENDING → RUNNING with the node's name and a new fence: by queue, within it priority, then age; only runs
        whose lock is free, one per lock; only while the node is not dead; settles concurrency and tokens."""
        ...

    def any_pending(self) -> bool:
        """Whether there is any PENDING run at all."""
        ...

    def promote(self, now: datetime) -> int:
        """Lets runs whose time, lock or pause is over compete again; the number."""
        ...

    def settle(self, settlements: Sequence[Settlement], now: datetime, *, orphans: bool = False) -> list[Run]:
        """Applies those whose run is still RUNNING under that node and fence, frees their locks; the runs as they are
        afterwards. A stale holder changes nothing: the nodes must not be dead. With `orphans` it is the other way
        round: the nodes must be dead or stopped."""
        ...

    def running(self, node: str) -> list[Run]: ...

    def orphaned(self, limit: int) -> list[Run]:
        """RUNNING runs of nodes that are dead or stopped."""
        ...

    def request_cancel(self, runs: Collection[str], why: str, now: datetime) -> set[str]:
        """RUNNING: asks its node; PENDING: CANCELED at once. The ids concerned."""
        ...

    def hasten(self, run: str, why: str, now: datetime) -> bool:
        """A run that waits for its next attempt need not wait for the time any longer; `why` is added to its note.
        False, and nothing changed: it does not wait for a time."""
        ...

    def discard(self, runs: Collection[str], now: datetime) -> set[str]:
        """Dead letters that nobody needs any more; the ids of those that were. Inserting a run with `retry_of` does
        the same to the run it names."""
        ...

    def cancel_requests(self, node: str) -> dict[str, str]:
        """Runs of the node that should end, and why."""
        ...

    def report(self, reports: Sequence[Report]) -> None: ...

    def put_output(self, outputs: Sequence[Output]) -> None: ...

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

    def pending_counts(self, jobs: Collection[str]) -> dict[str, Leftover]:
        """Every waiting run of these jobs, by its kind; jobs without any are left out."""
        ...

    def redefine(self, job: Job) -> int:
        """Gives the waiting runs of a job whose row is locked its queue, priority and lock; the number that changed."""
        ...

    def shift_clock(self, step: timedelta, now: datetime) -> None:
        """Moves everything stored in clock time (not_before, refill times) by `step`."""
        ...

    def prune(self, job: str, keep: timedelta | int, keep_output: timedelta, now: datetime, limit: int) -> int:
        """Deletes old finished runs, skips and outputs of one job into day summaries, moves `pruned_before`; the number
        of rows, `limit` at most. Never unfinished runs, dead letters, the last success and failure."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """Before a run of some priority in a queue: runs that are ready (counted up to a thousand), and those that run."""

    ahead: int
    running: int


class Queues(Protocol):
    def line(self, queue: str, priority: int) -> Line:
        """What a new run of that priority finds before it."""
        ...

    def take(self, queue: str, now: datetime) -> float | None:
        """Takes one token. None: it was there; else the seconds until there is one. Raises NotFound for a queue that
        does not exist, Refused for one without a rate."""
        ...


class Ledger(Protocol):
    """What `audit` and the deadline compare with the expected set. Backfilled runs do not count: what became of their
    instants before stays true."""

    def entries(self, job: str, first: datetime, last: datetime) -> tuple[list[datetime], list[Skip]]:
        """Instants that have a run, and skips that touch `[first, last]`; both ascending. SKIPPED runs are skips."""
        ...

    def fates(self, job: str, first: datetime, last: datetime) -> dict[datetime, list[tuple[str, Status]]]:
        """Per instant in `[first, last]` that has any: its runs, oldest first, backfilled ones among them."""
        ...

    def backfills(self, job: str, instants: Sequence[datetime]) -> dict[datetime, int]:
        """How often each of these was backfilled before; those that were not are left out."""
        ...

    def overlaps(self, since: Mapping[str, datetime]) -> list[tuple[Skip, datetime]]:
        """Overlap skips of these jobs that reach past the instant given for each, with the start (or, before it, the
        creation) of the run that was in their way."""
        ...

    def totals(self, since: datetime, until: datetime) -> dict[str, tuple[int, dict[str, int]]]:
        """Per job: number of instants in `[since, until]` with a run, and of skipped ones by reason."""
        ...


class Transaction(Protocol):
    nodes: Nodes
    generations: Generations
    jobs: Jobs
    runs: Runs
    queues: Queues
    ledger: Ledger
    tokens: Tokens


class Store(Protocol):
    kind: str
    """`sqlite` or `postgresql`"""

    def begin(self) -> AbstractContextManager[Transaction]:
        """A writing transaction: committed at the end of the block, rolled back by an exception. Raises Unavailable
        when the database cannot be reached, is locked too long or is full; then nothing was written."""
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent, reading transaction."""
        ...

    def now(self) -> datetime:
        """The time that planning uses: the database's on PostgreSQL, this machine's on SQLite."""
        ...
