"""The nouns of the product (docs/architecture.md, "Words"): frozen values without behaviour or I/O.

Instants are aware datetimes in UTC, durations are timedeltas, identifiers of runs and nodes are UUIDv7 texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler.core.value_object import value_object

Json = Any
"""Anything `json.dumps` takes."""

ELSEWHERE = "elsewhere"
"""In the place of a node: a run of an external job, which no node holds. In a schedule version: nothing plans it."""


class Cause(StrEnum):
    """Why a run exists."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    BACKFILL = "backfill"
    MANUAL = "manual"
    API = "api"
    EVENT = "event"
    REPLAY = "replay"
    AFTER = "after"
    RETRY = "retry"


class Status(StrEnum):
    """PENDING → RUNNING → final; RUNNING → PENDING while a further attempt waits. A final status never changes."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    SKIPPED = "SKIPPED"

    @property
    def final(self) -> bool:
        return self not in (Status.PENDING, Status.RUNNING)


class SkipReason(StrEnum):
    """Why an occurrence was decided not to run."""

    OVERLAP = "overlap"
    MISSED = "missed"
    PAUSED = "paused"
    BLACKOUT = "blackout"
    LOCK = "lock"


class FailReason(StrEnum):
    """Why an attempt did not succeed; JOB_REMOVED for runs whose job was removed while they waited."""

    EXIT = "exit"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    LOST = "lost"
    SPAWN = "spawn"
    HTTP = "http"
    ERROR = "error"
    JOB_REMOVED = "job_removed"


class WaitsFor(StrEnum):
    """What a PENDING run waits for, besides a place in its queue."""

    TIME = "time"
    LOCK = "lock"
    PAUSE = "pause"


@value_object
class Generation:
    """One configuration that is or was in force. Ids grow by one."""

    id: int
    hash: str
    files: Mapping[str, str]
    created_at: datetime
    author: str
    tzdata: str
    schedule_code: int


@value_object
class ScheduleVersion:
    """A schedule as it was valid for instants after `valid_from`, up to and including `valid_to` (None = in force):
    what falls due at the moment of a reload still belongs to the old version."""

    job: str
    spec: Mapping[str, Json]
    valid_from: datetime
    valid_to: datetime | None

    @property
    def elsewhere(self) -> bool:
        """Of an external job: its instants are expected, and neither planned nor audited."""
        return bool(self.spec.get(ELSEWHERE))


@value_object
class Pause:
    """Nothing of the job is claimed, and no instant of it runs, in `[start, until)`; None = until somebody resumes
    it."""

    job: str
    start: datetime
    until: datetime | None
    reason: str
    author: str


@value_object
class Ack:
    """Somebody knows that the instants in `[first, last]` have not succeeded: nothing is expected of them any more."""

    job: str
    first: datetime
    last: datetime
    at: datetime
    reason: str
    author: str


@value_object
class JobState:
    """What the database knows about a job. `generation` is that of its last change, `state` one of core.state.KEPT and
    since when it is that (None: it never changed)."""

    name: str
    generation: int
    fingerprint: str
    enabled: bool
    next_due_at: datetime | None
    since: datetime
    removed_at: datetime | None = None
    pruned_before: datetime | None = None
    deadline_at: datetime | None = None
    last_success_at: datetime | None = None
    settled_until: datetime | None = None
    last_failure_at: datetime | None = None
    consecutive_failures: int = 0
    alarm: str | None = None
    state: str = "up"
    state_since: datetime | None = None


@value_object
class NewRun:
    """A run to insert. `key` is unique per job; a second insert of it changes nothing. `has_payload` tells a payload
    of null from none: runs with a payload have retries of their own and become dead letters when they fail. `event`:
    the `seq` of the event that it is about. `rank`: of the unfinished runs with this lock that have one, the one with
    the smallest (rank, key) is next, also while it waits for its next attempt; None: the oldest that waits. `trace`:
    the trace context of the request that asked for it, as core.trace keeps it."""

    id: str
    job: str
    key: str
    cause: Cause
    created_at: datetime
    queue: str
    priority: int = 0
    lock: str | None = None
    scheduled_for: datetime | None = None
    not_before: datetime | None = None
    payload: Json = None
    has_payload: bool = False
    retry_of: str | None = None
    note: str = ""
    author: str = ""
    event: int | None = None
    rank: int | None = None
    trace: str | None = None


@value_object
class Run:
    """One execution of a job, as stored. `seq` orders runs by their insertion, `failures` counts attempts that
    used up a retry, `lost` those whose node died. `took`: for how many seconds its attempts were at work, together, by
    a clock that never steps (None: of none of them is it known); what lies between attempts is not in it."""

    seq: int
    id: str
    job: str
    key: str
    cause: Cause
    status: Status
    created_at: datetime
    queue: str
    priority: int
    attempt: int = 0
    failures: int = 0
    lost: int = 0
    reason: str | None = None
    lock: str | None = None
    scheduled_for: datetime | None = None
    not_before: datetime | None = None
    waits_for: WaitsFor | None = None
    has_payload: bool = False
    retry_of: str | None = None
    note: str = ""
    author: str = ""
    node: str | None = None
    fence: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    cancel: str | None = None
    error: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    progress: float | None = None
    message: str | None = None
    result: Json = None
    checkpoint: Json = None
    discarded_at: datetime | None = None
    took: float | None = None
    event: int | None = None
    rank: int | None = None
    trace: str | None = None
    payload: Json = None


@value_object
class Attempt:
    """One try of a run. `outcome` is None while it runs, else `completed`, `canceled`, `snoozed` or a FailReason.
    `took` as in Run."""

    run: str
    number: int
    node: str
    fence: int
    started_at: datetime
    fingerprint: str = ""
    finished_at: datetime | None = None
    outcome: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    left: int = 0
    took: float | None = None


@value_object
class Skip:
    """`count` instants of one job, from `first` to `last` without another entry between, that will not run."""

    job: str
    reason: SkipReason
    first: datetime
    last: datetime
    count: int
    blocked_by: str | None = None
    detail: str = ""


@value_object
class Node:
    """One running daemon. `lease` None: nobody can take over from it (SQLite). `leaving_at`: from then on it planned
    nothing more and only waited for what it held. `hints`, `aside`: its last word about itself (core.hints.Word)."""

    id: str
    host: str
    pid: int
    version: str
    started_at: datetime
    lease: timedelta | None
    slots: int
    queues: tuple[str, ...] | None = None
    state: str = "live"
    beat: int = 0
    beat_at: datetime | None = None
    generation: int = 0
    clock_offset: float = 0.0
    leaving_at: datetime | None = None
    hints: str | None = None
    aside: str | None = None


@value_object
class Output:
    """What an attempt printed: the first and the last bytes, and how many were left out between them."""

    run: str
    attempt: int
    head: bytes
    tail: bytes
    omitted: int
    complete: bool

    @property
    def written(self) -> bool:
        """It printed anything."""
        return bool(self.head or self.tail or self.omitted)
