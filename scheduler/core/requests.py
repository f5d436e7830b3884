"""What the engine and the store hand each other: questions, decisions and answers, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import NamedTuple

from scheduler.core.counted import counted
from scheduler.core.model import JobState, Json, Pause, Run, Status
from scheduler.core.value_object import value_object


@value_object
class Claim:
    """What a node asks for: at most `limit` runs out of `queues` (None: all). `generation` is the newest one it has
    loaded: runs of jobs changed later are left. `skip_busy_queues`: a queue whose row somebody holds is passed over
    (the planner), else waited for (the worker). `held`: this transaction holds the node's row already, and it is
    live. `served`: queues out of which this node took before, the last one last; the others have their turn first."""

    node: str
    generation: int
    limit: int
    queues: tuple[str, ...] | None = None
    skip_busy_queues: bool = False
    held: bool = False
    served: tuple[str, ...] = ()


@value_object
class Claimed:
    """The runs that a node holds from now on, with their payloads, and how their jobs stand, by name."""

    runs: Sequence[Run] = ()
    states: Mapping[str, JobState] = field(default_factory=dict)


class Defined(NamedTuple):
    """What a reload compares of a job: of thousands, in the transaction for which all others wait."""

    fingerprint: str
    removed: bool
    alarmed: bool


@value_object
class Promoted:
    """How many runs compete again, and the last lock that the sweep has seen: "" if there is none behind it."""

    runs: int
    after: str


@value_object
class Leftover:
    """How many waiting runs a removed job leaves. Those with a payload become dead letters; occurrences, and others
    without a payload (started by hand, by a program, by another job), are canceled. `held_events` are events of paused
    sources that would have made it a run, and become dead letters: also of a job that is not removed."""

    occurrences: int = 0
    payload_runs: int = 0
    other_runs: int = 0
    held_events: int = 0

    def __str__(self) -> str:
        """`1 occurrence, 2 runs with a payload`."""
        kinds = (
            (self.occurrences, "occurrence", "occurrences"),
            (self.payload_runs, "run with a payload", "runs with a payload"),
            (self.other_runs, "other run", "other runs"),
            (self.held_events, "held event", "held events"),
        )
        return ", ".join(counted(count, one, many) for count, one, many in kinds if count)


@value_object
class Settlement:
    """What becomes of a RUNNING run of `job` held by `node` with `fence`: computed by core.lifecycle, applied by the
    store. `lock` is what the attempt holds.

    `status` PENDING means a further attempt, not before `not_before`. `failures` and `lost` are the new counts.
    `ended` is when the attempt was over (None: now), `took` for how many seconds it was at work, by a clock that never
    steps (None: nobody knows).
    `attempt_outcome` closes the attempt; None gives it back as if it had not been claimed. `keeps_lock`: a dead letter
    that holds up what waits behind it, until somebody retries or discards it.
    """

    run: str
    job: str
    lock: str | None
    node: str
    fence: int
    status: Status
    attempt_outcome: str | None
    reason: str | None = None
    not_before: datetime | None = None
    failures: int = 0
    lost: int = 0
    error: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    result: Json = None
    left: int = 0
    ended: datetime | None = None
    took: float | None = None
    keeps_lock: bool = False


@value_object
class Settled:
    """What was settled: the runs as they are afterwards, without payloads, and, by name, how the jobs stand of which a
    run was COMPLETED or FAILED. Their deadlines are still those from before. `live` are the nodes among those that held
    them that are live, and stay it until the transaction ends. `newest`: the newest generation when they were asked for
    (None: none of them is known)."""

    runs: list[Run]
    jobs: Mapping[str, JobState]
    live: frozenset[str]
    newest: int | None


@value_object
class Report:
    """What a running run says about itself; None leaves a field as it is."""

    run: str
    fence: int
    progress: float | None = None
    message: str | None = None
    result: Json = None
    checkpoint: Json = None


@value_object
class Unfinished:
    """An unfinished run as policies see it. `foreign_holder` is the run of *another* job that holds its lock."""

    job: str
    run: str
    seq: int
    status: Status
    cause: str
    attempt: int
    created_at: datetime
    foreign_holder: str | None = None


@value_object
class Due:
    """A job whose `next_due_at` has come, with what its policies need. `open_skip`: its next skip may go on with its
    last one."""

    state: JobState
    unfinished: tuple[Unfinished, ...]
    pauses: tuple[Pause, ...]
    open_skip: bool = True


@value_object
class Advance:
    """Moves `next_due_at` of a job from `old` to `new` if it is still `old`."""

    job: str
    old: datetime
    new: datetime | None
