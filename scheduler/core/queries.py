"""What people are shown: read models for the faces (web, cli, metrics), answered by the store, never by the
engine.

Everything here is a snapshot: the answers of one `queries()` block belong together. Lists come without
payloads (`Run.payload` is None there, `Run.has_payload` is true to fact); `run` and `dead_letters` load them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime, timedelta
from typing import Protocol

from scheduler.core.event_queries import EventQueries
from scheduler.core.job import Queue
from scheduler.core.model import Attempt, JobState, Json, Node, Output, Pause, Run, Skip, Status
from scheduler.core.notification_queries import NotificationQueries
from scheduler.core.scan_queries import ScanQueries
from scheduler.core.state import Flip
from scheduler.core.value_object import value_object


@value_object
class JobView:
    """One job as `list` and `describe` show it. `last` is the run that started last; `waiting` counts PENDING
    runs; `pause` is the one in force now, `upcoming` the next one to come. `last_failure` is the run that failed last,
    while the job has not succeeded since."""

    state: JobState
    definition: Mapping[str, Json]
    running: tuple[Run, ...] = ()
    waiting: int = 0
    last: Run | None = None
    last_failure: Run | None = None
    pause: Pause | None = None
    upcoming: Pause | None = None
    last_skip: Skip | None = None


@value_object
class RunFilter:
    """Which entries a history shows; empty fields do not restrict. `since` (inclusive) and `until`
    (exclusive) are compared with the creation of a run and the instants of a skip; skips count as cause
    `schedule`."""

    jobs: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()
    causes: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    skips: bool = True


@value_object
class Entry:
    """One line of a history: exactly one of a run and a range of instants that did not run. `at` is its place in the
    order: when the run was made, the first instant of the range."""

    at: datetime
    run: Run | None = None
    skip: Skip | None = None


CURSOR = r"r(\d{1,18})s(\d{1,18})"
"""What the cursor of a page looks like; nobody but the store knows what it means."""


@value_object
class Page:
    """Entries, the last recorded first. `cursor` asks for the page after this one; None: there is none."""

    entries: tuple[Entry, ...]
    cursor: str | None = None


@value_object
class Waiting:
    """Why a PENDING run does not run yet: `time` (until `until`), `pause`, `lock` (its name, and who holds
    it: None while an older run is next; `holder_dead`: a dead letter, which keeps it until somebody retries or discards
    it), or `queue` with the number of runs before it."""

    kind: str
    until: datetime | None = None
    lock: str | None = None
    holder_run: str | None = None
    holder_job: str | None = None
    holder_dead: bool = False
    queue: str | None = None
    ahead: int = 0


@value_object
class RunDetail:
    """A run with its payload, its attempts in order, what it waits for, and the runs that retry it."""

    run: Run
    attempts: tuple[Attempt, ...] = ()
    waiting: Waiting | None = None
    retried_by: tuple[str, ...] = ()


@value_object
class QueueView:
    """A queue and what is in it. `waiting` counts by what PENDING runs wait for (`time lock pause`), `ready`
    those that wait for nothing but a place; `oldest` is the creation of the oldest ready one. `tokens` as
    last settled."""

    queue: Queue
    running: int = 0
    ready: int = 0
    waiting: Mapping[str, int] = field(default_factory=dict)
    oldest: datetime | None = None
    tokens: float | None = None


@value_object
class NodeView:
    node: Node
    running: int


@value_object
class GenerationLine:
    """A generation without its texts (`Generations.get` has them)."""

    id: int
    hash: str
    created_at: datetime
    author: str
    tzdata: str
    schedule_code: int


@value_object
class JobGauge:
    """What metrics say about a job. `paused_since` None: not paused now. `attempt_since`: when the oldest attempt in
    progress began. `last_*` describe the run that ended last."""

    state: JobState
    running: int = 0
    waiting: int = 0
    dead_letters: int = 0
    paused_since: datetime | None = None
    attempt_since: datetime | None = None
    last_start_at: datetime | None = None
    last_end_at: datetime | None = None
    last_duration: float | None = None
    last_exit_code: int | None = None


FAREWELL = timedelta(minutes=16)
"""For how long a removed job is told to be gone: longer than the 15 minutes that alert rules look back."""


@value_object
class Gauges:
    """All that `/metrics` reads from the database, in one snapshot. Removed jobs are left out, but for what they left
    behind: `dead_letters` counts those of every job that has any, removed or not; `gone` names those removed less than
    FAREWELL ago, by whichever node or process (empty if only some jobs were asked for). `failing_channels`: those whose
    last message was not taken, and since when none was."""

    jobs: tuple[JobGauge, ...]
    queues: tuple[QueueView, ...]
    nodes: tuple[NodeView, ...]
    generation: int
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    failing_channels: Mapping[str, datetime] = field(default_factory=dict)


COUNTED = 100_000
"""Rows up to which a large table is counted."""


@value_object
class DatabaseStatus:
    """`url` carries no password. `size` in bytes, `rows` per table; on PostgreSQL those of a table with
    more than COUNTED are an estimate, never less than that.

    `away`: why it does not answer, None if it does; then what only it knows is None, `hint` may say what happens next.
    `look`: what to type on the daemon's machine to see whether it is there."""

    kind: str
    url: str
    revision: str | None
    oldest_release: str | None
    size: int | None
    rows: Mapping[str, int] | None
    away: str | None = None
    hint: str | None = None
    look: str = ""


class Queries(EventQueries, ScanQueries, NotificationQueries, Protocol):
    """One consistent, reading transaction. Unknown names give empty answers or None, never an error."""

    def jobs(self, now: datetime, names: Collection[str] | None = None, q: str = "") -> list[JobView]:
        """Present jobs by name (named ones also if removed); `q` must occur in the name, in any case."""
        ...

    def history(self, which: RunFilter, limit: int = 50, cursor: str | None = None) -> Page:
        """Raises InvalidInput for a cursor that this method did not hand out."""
        ...

    def run(self, run: str) -> RunDetail | None: ...

    def find_runs(self, text: str, limit: int = 10) -> list[str]:
        """Ids that are `text` or end with it (at least 4 characters), newest first."""
        ...

    def output(self, run: str, attempt: int | None = None) -> Output | None:
        """What that attempt wrote, with attempt None the last one of which that is known: the last that is over, or one
        that tells meanwhile. None: it wrote nothing, or that is kept no longer."""
        ...

    def waiting(self, runs: Collection[str]) -> dict[str, Waiting]:
        """For the PENDING ones among these runs."""
        ...

    def queues(self) -> list[QueueView]: ...

    def nodes(self) -> list[NodeView]: ...

    def generations(self, limit: int = 20) -> list[GenerationLine]:
        """Newest first."""
        ...

    def dead_letters(self, job: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """FAILED runs with a payload that nobody has retried or discarded, newest first, with their
        payloads."""
        ...

    def held_up(self, runs: Collection[str] | None = None) -> dict[tuple[str, str], int]:
        """How many runs wait behind dead letters that keep their lock (None: behind all), by (job, run) of the letter;
        those behind which none waits are left out."""
        ...

    def flips(self, job: str, limit: int = 20) -> list[Flip]:
        """What the job changed to and when, the newest first, also of a removed one."""
        ...

    def gauges(self, now: datetime, jobs: Collection[str] | None = None) -> Gauges:
        """`jobs`: only these are looked up one by one; what concerns no single job is always there."""
        ...

    def overdue(self, before: datetime) -> list[str]:
        """Present, enabled jobs that were due before that instant and are not planned, most overdue first."""
        ...


class Readable(Protocol):
    """The face of the store that shows."""

    def queries(self) -> AbstractContextManager[Queries]: ...

    def db_status(self) -> DatabaseStatus:
        """Answers also while the database does not."""
        ...
