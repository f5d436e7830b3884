"""A job as its author means it: one entry of jobs.yaml with all defaults applied. Frozen values without behaviour.

Instants are aware datetimes in UTC, durations are timedeltas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler.core.channel import Channel
from scheduler.core.model import Json, Status
from scheduler.core.schedule import Schedule
from scheduler.core.secret import Secret
from scheduler.core.source import Compensate, OnEvent, Source
from scheduler.core.value_object import value_object

EXTERNAL = "external"
"""The kind of action of a job that runs somewhere else and tells us how it went."""


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


@value_object
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


@value_object
class Blackout:
    """Instants inside it are SKIPPED(blackout): either `[start, end)` or, from each occurrence of `schedule`,
    `length`."""

    reason: str
    start: datetime | None = None
    end: datetime | None = None
    schedule: Schedule | None = None
    length: timedelta | None = None


@value_object
class Action:
    """What a job does: the kind names the executor, the options are what that executor's model validated."""

    kind: str
    options: Mapping[str, Json]


@value_object
class After:
    """This job gets one run per run of `job` that ends `on` (a final status)."""

    job: str
    on: Status


@value_object
class Limits:
    """Resource limits of a child: bytes of address space, number of tasks, niceness."""

    memory: int | None = None
    tasks: int | None = None
    nice: int | None = None


@value_object
class Child:
    """Surroundings of a job's process."""

    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    workdir: str | None = None
    user: str | None = None
    limits: Limits = Limits()
    stdin: str | None = None


@value_object
class Watch:
    """How a job's silence is judged and told. `notify`: what each channel is told of (words of core.tiding.KINDS)."""

    heartbeat: bool = True
    grace: timedelta = timedelta(hours=1)
    alert_after: int = 1
    notify: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    severity: str = "warning"
    team: str = ""
    runbook: str = ""
    tags: tuple[str, ...] = ()
    ping_url: str | Secret | None = None


@value_object
class Job:
    """One entry of jobs.yaml with all defaults applied.

    `definition_text` is its canonical JSON form (no secrets in it) and `fingerprint` a hash of that: two jobs with
    one fingerprint behave alike; it is kept as text because thousands of them lie there unread. `lock` is the key
    of the lock it needs, None when it may overlap itself.
    """

    name: str
    definition_text: str
    fingerprint: str
    action: Action
    description: str = ""
    enabled: bool = True
    schedule: Schedule | None = None
    after: After | None = None
    on_event: OnEvent | None = None
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
    compensate: Compensate | None = None

    @property
    def external(self) -> bool:
        """It runs somewhere else: expected by its schedule, told by pings, never planned or started here."""
        return self.action.kind == EXTERNAL

    @property
    def definition(self) -> Mapping[str, Json]:
        """`definition_text`, read anew at each call."""
        found: Mapping[str, Json] = json.loads(self.definition_text)
        return found


def lock_key(job: str, overlap: Overlap, shared: str | None) -> str | None:
    """The key of the lock that a job needs: of the one it shares with others, or of its own; None: it needs none."""
    if overlap is Overlap.ALLOW:
        return None
    return f"job:{job}" if shared is None else f"lock:{shared}"


@value_object
class Queue:
    """Limits over all nodes: runs at once, and tokens of a bucket refilled at `rate` per second up to `burst`."""

    name: str
    concurrency: int | None = None
    rate: float | None = None
    burst: int = 1


@value_object
class Configuration:
    """Everything one jobs.yaml (with its includes) says. `hash` covers every text and every interpolated value."""

    hash: str
    files: Mapping[str, str]
    jobs: Mapping[str, Job]
    queues: Mapping[str, Queue]
    sources: Mapping[str, Source] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)
