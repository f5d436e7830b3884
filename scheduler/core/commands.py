"""What a person or program may ask of the daemon: carried out by the engine, offered by the faces.

Every command is one transaction. Errors are those of core.errors: NotFound names what is missing and close matches,
Refused says why not now, InvalidInput what is wrong with the request; then nothing was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from scheduler.core.errors import SchedulerError
from scheduler.core.model import Ack, Cause, Json, Pause, Run, Status, WaitsFor
from scheduler.core.requests import Leftover
from scheduler.core.value_object import value_object


class IfBusy(StrEnum):
    """What a request for a run does while the job has an unfinished run."""

    REFUSE = "refuse"
    QUEUE = "queue"
    REPLACE = "replace"


@value_object
class RunRequest:
    """Somebody wants a run, now, whatever the schedule says. `cause` MANUAL: a person, whom pauses and `enabled` do not
    hold up; API: a program, which waits while the job is paused.
    `key` is an Idempotency-Key; with `fingerprint` and without a key the job and the payload are the key. `trace` is
    the trace context that the run goes on, as core.trace keeps it."""

    job: str
    author: str
    cause: Cause = Cause.MANUAL
    reason: str = ""
    payload: Json = None
    has_payload: bool = False
    if_busy: IfBusy = IfBusy.REFUSE
    key: str | None = None
    fingerprint: bool = False
    trace: str | None = None


@value_object
class Accepted:
    """The run that a request made, or (`new` False) had made before. `begun`: it was started at once. Of one that waits
    for nothing but a place: how many are `ahead` of it (counted up to a thousand), and about how many seconds it will
    `wait` (None: nobody can say). `replaced`: the runs that were asked to end for it."""

    run: str
    job: str
    status: Status
    new: bool
    queue: str
    waits_for: WaitsFor | None = None
    begun: bool = False
    ahead: int | None = None
    wait: float | None = None
    replaced: tuple[str, ...] = ()


Deliver = Callable[[list[tuple[Any, list["Accepted | SchedulerError"]]]], None]
"""Takes tickets, each with the answers to its requests."""


@value_object
class Reloaded:
    """What a reload did, or (`applied` False) would do. Jobs are names. `pending` counts, per removed job that leaves
    any, its waiting runs; `warnings` are what `check` would say (once applied: of jobs that are new or changed);
    `changes` are, per changed job, lines of old and new values."""

    applied: bool
    generation: int
    hash: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    pending: Mapping[str, Leftover] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@value_object
class JobAudit:
    """One job's balance over the period: `expected = ran + sum(skipped.values()) + len(unaccounted)`.

    `unaccounted` lists at most 100 instants, `unaccounted_count` counts all. `surplus`: recorded instants that the
    schedule does not have, or that have two entries. `not_recomputable` says why a part of the period could not be
    compared."""

    job: str
    expected: int
    ran: int
    skipped: Mapping[str, int]
    unaccounted: tuple[datetime, ...] = ()
    unaccounted_count: int = 0
    surplus: tuple[datetime, ...] = ()
    not_recomputable: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.unaccounted_count and not self.surplus


@value_object
class AuditReport:
    since: datetime
    until: datetime
    jobs: tuple[JobAudit, ...]

    @property
    def clean(self) -> bool:
        return all(job.clean for job in self.jobs)


@value_object
class Acked:
    """`deadline`: by when the job must succeed now; None: nothing is expected of it."""

    ack: Ack
    deadline: datetime | None


@value_object
class LeftOut:
    """An instant that is not backfilled: `completed`, `unfinished` (both with the run), or too old."""

    instant: datetime
    why: str
    run: str | None = None


@value_object
class Backfilled:
    """The instants that get a run, or (no `runs`) would; `runs` are their ids, in the same order."""

    job: str
    instants: tuple[datetime, ...]
    left_out: tuple[LeftOut, ...] = ()
    runs: tuple[str, ...] = ()


class Commands(Protocol):
    def submit(self, requests: Sequence[RunRequest], ticket: Any, deliver: Deliver) -> None:
        """Runs that are asked for. Returns at once; when they are on disk `deliver` is called, in another thread, with
        this ticket and others that were served in the same commit. A key that was used gives the run that it made. An
        error concerns one request alone:

        NotFound; Refused while the job has an unfinished run (without payload, unless `if_busy` says otherwise), or for
        a key that came with another payload; Unavailable: nothing was written (if the connection broke while it
        committed: or all of it; with a key it may be asked again)."""
        ...

    def cancel(self, run: str, *, author: str, reason: str = "") -> Run:
        """Asks an unfinished run to end: a waiting one is CANCELED at once, a running one when it is over. Refused for
        a finished one."""
        ...

    def retry(self, run: str, *, author: str, reason: str = "") -> Run:
        """A new run (`retry_of`) of a finished one, with its payload. A run that waits for the time of its next attempt
        runs now, one that waits for something else goes on waiting; its `note` says who wanted that, and why."""
        ...

    def retry_all(
        self, runs: Sequence[str], *, author: str, reason: str = ""
    ) -> list[tuple[str, Run | SchedulerError]]:
        """The same for many, in their order; an error (NotFound, Refused) concerns that one alone."""
        ...

    def pause(self, jobs: Collection[str], *, until: datetime | None, reason: str, author: str) -> list[Pause]: ...

    def resume(self, jobs: Collection[str], *, author: str) -> list[str]:
        """The jobs that were paused."""
        ...

    def ack(self, job: str, *, reason: str, author: str) -> Acked:
        """The job's miss is known: nothing is expected any more of instants that have come. Refused if there is
        none."""
        ...

    def backfill(
        self, job: str, first: datetime | None, last: datetime, *, most: int, dry_run: bool, reason: str, author: str
    ) -> Backfilled:
        """Runs for instants of the past in `[first, last]` (None: after the last success) that neither completed nor
        have an unfinished run, oldest first, `most` at most; they wait for the job's lock like all others. Refused if
        there are none or more."""
        ...

    def discard(self, runs: Collection[str], job: str | None, *, author: str) -> list[str]:
        """Dead letters that nobody needs any more: these, or all of a job; the ids of those that were."""
        ...

    def take_token(self, queue: str) -> float | None:
        """One token of a queue's rate, for a call outside of the queue's own runs. None: it was there; else the
        seconds until there is one. NotFound for no such queue, Refused for one without a rate."""
        ...

    def reload(
        self,
        *,
        author: str,
        drop_pending: bool = False,
        if_hash: str | None = None,
        dry_run: bool = False,
    ) -> Reloaded:
        """Puts the file in force: all or nothing. Raises InvalidInput with every error of the file, Refused when
        removed jobs have waiting runs and `drop_pending` is not given, or when the file's hash is not `if_hash`."""
        ...

    def audit(self, *, since: datetime | None = None, job: str | None = None) -> AuditReport:
        """Recomputes what should have happened since then (default: 24 hours ago) and compares it with the ledger."""
        ...

    def find_run(self, text: str) -> str:
        """The full id of the run that `text` names: an id, its last characters (unambiguous), or a job's name (its
        unfinished run, else its last). Raises NotFound, or Refused when several match."""
        ...
