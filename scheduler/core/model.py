"""The nouns of the product (docs/architecture.md, "Words"): frozen values without behaviour or I/O.

Instants are aware datetimes in UTC, durations are timedeltas, identifiers of runs and nodes are UUIDv7 texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler.core.schedule import Schedule

Json = Any
"""Anything `json.dumps` takes."""


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


class Overlap(StrEnum):
    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"
    ALLOW = "allow"


class CatchUp(StrEnum):
    LATEST = "latest"
    ALL = "all"
    NONE = "none"


class OnLost(StrEnum):
    RETRY = "retry"
    FAIL = "fail"


class Leftovers(StrEnum):
    END = "end"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Retries:
    """Waits between the attempts of a run.

    `waits` given: exactly these, one per further attempt. Else `limit` further attempts, the first after
    `delay`, each wait `backoff` times the one before, at most `max_delay`.
    """

    limit: int
    waits: tuple[timedelta, ...] = ()
    delay: timedelta = timedelta(seconds=30)
    backoff: float = 2.0
    max_delay: timedelta = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Blackout:
    """Instants inside it are SKIPPED(blackout): either `[start, end)` or, from each occurrence of `schedule`,
    `length`."""

    reason: str
    start: datetime | None = None
    end: datetime | None = None
    schedule: Schedule | None = None
    length: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What a job does: the kind names the executor, the options are what that executor's model validated."""

    kind: str
    options: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class After:
    """This job gets one run per run of `job` that ends `on` (a final status)."""

    job: str
    on: Status


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is read when the run starts: exactly one of the two."""

    env: str | None = None
    file: str | None = None
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a child: bytes of address space, number of tasks, niceness."""

    memory: int | None = None
    tasks: int | None = None
    nice: int | None = None


@dataclass(frozen=True, slots=True)
class Child:
    """Surroundings of a job's process."""

    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    workdir: str | None = None
    user: str | None = None
    limits: Limits = Limits()
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """How a job's silence is judged and told."""

    heartbeat: bool = True
    grace: timedelta = timedelta(hours=1)
    alert_after: int = 1
    notify: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    severity: str = "warning"
    team: str = ""
    runbook: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of jobs.yaml with all defaults applied.

    `definition` is its canonical JSON form (no secrets in it) and `fingerprint` a hash of that: two jobs with
    one fingerprint behave alike. `lock` is the key of the lock it needs, None when it may overlap itself.
    """

    name: str
    definition: Mapping[str, Json]
    fingerprint: str
    action: Action
    description: str = ""
    enabled: bool = True
    schedule: Schedule | None = None
    after: After | None = None
    overlap: Overlap = Overlap.SKIP
    lock: str | None = None
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_window: timedelta = timedelta(days=7)
    catch_up_max: int = 100
    blackouts: tuple[Blackout, ...] = ()
    timeout: timedelta = timedelta(hours=24)
    kill_after: timedelta = timedelta(seconds=30)
    leftovers: Leftovers = Leftovers.END
    retries: Retries = Retries(limit=0)
    payload_retries: Retries = Retries(limit=0)
    on_lost: OnLost = OnLost.RETRY
    queue: str = "default"
    priority: int = 0
    keep: timedelta | int = timedelta(days=90)
    keep_output: timedelta = timedelta(days=30)
    log_limit: int = 1 << 20
    child: Child = Child()
    watch: Watch = Watch()


@dataclass(frozen=True, slots=True)
class Queue:
    """Limits over all nodes: runs at once, and tokens of a bucket refilled at `rate` per second up to `burst`."""

    name: str
    concurrency: int | None = None
    rate: float | None = None
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything one jobs.yaml (with its includes) says. `hash` covers every text and every interpolated value."""

    hash: str
    files: Mapping[str, str]
    jobs: Mapping[str, Job]
    queues: Mapping[str, Queue]


@dataclass(frozen=True, slots=True)
class Generation:
    """One configuration that is or was in force. Ids grow by one."""

    id: int
    hash: str
    files: Mapping[str, str]
    created_at: datetime
    author: str
    tzdata: str
    schedule_code: int


@dataclass(frozen=True, slots=True)
class ScheduleVersion:
    """A schedule as it was valid for instants after `valid_from`, up to and including `valid_to` (None = in force):
    what falls due at the moment of a reload still belongs to the old version."""

    job: str
    spec: Mapping[str, Json]
    valid_from: datetime
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing of the job is claimed, and no instant of it runs, in `[start, until)`; None = until somebody resumes
    it."""

    job: str
    start: datetime
    until: datetime | None
    reason: str
    author: str


@dataclass(frozen=True, slots=True)
class JobState:
    """What the database knows about a job. `generation` is that of its last change."""

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


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to insert. `key` is unique per job; a second insert of it changes nothing. `has_payload` tells a payload
    of null from none: runs with a payload have retries of their own and become dead letters when they fail."""

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


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a job, as stored. `seq` orders runs by their insertion, `failures` counts attempts that
    used up a retry, `lost` those whose node died."""

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
    payload: Json = None
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


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a run. `outcome` is None while it runs, else `completed`, `canceled`, `snoozed` or a FailReason."""

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


@dataclass(frozen=True, slots=True)
class Skip:
    """`count` instants of one job, from `first` to `last` without another entry between, that will not run."""

    job: str
    reason: SkipReason
    first: datetime
    last: datetime
    count: int
    blocked_by: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One running daemon. `lease` None: nobody can take over from it (SQLite)."""

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


@dataclass(frozen=True, slots=True)
class Output:
    """What an attempt printed: the first and the last bytes, and how many were left out between them."""

    run: str
    attempt: int
    head: bytes
    tail: bytes
    omitted: int
    complete: bool
