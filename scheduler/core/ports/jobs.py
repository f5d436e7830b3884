"""Jobs in the store: where each stands, its schedules over time, its pauses and acknowledgements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from scheduler.core.model import Ack, JobState, Json, Pause, ScheduleVersion
from scheduler.core.requests import Advance, Defined, Due
from scheduler.core.state import Flip


class Jobs(Protocol):
    def states(self, names: Collection[str] | None = None, *, lock: bool = False) -> dict[str, JobState]: ...

    def names(self, after: str, limit: int) -> list[str]:
        """Names greater than that, in their order, those of removed jobs among them."""
        ...

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

    def defined(self) -> dict[str, Defined]:
        """All jobs by name, removed ones too."""
        ...

    def put(self, states: Iterable[tuple[JobState, str]]) -> None:
        """Inserts or replaces job rows; the text is the job's definition as JSON."""
        ...

    def open_locks(self, keys: Collection[str]) -> None:
        """Makes the rows of locks that are not there yet; what needs one that is not there makes it itself."""
        ...

    def followers(self, jobs: Collection[str]) -> dict[str, Mapping[str, Json]]:
        """The definitions of the present, enabled jobs that run after one of these, by name. Looks at every job."""
        ...

    def subscribers(self) -> dict[str, Mapping[str, Json]]:
        """The definitions of the present, enabled jobs that events start, by name. Looks at every job."""
        ...

    def advance(self, moves: Sequence[Advance]) -> set[str]:
        """The jobs that moved."""
        ...

    def set_alarm(self, job: str, alarm: str | None, *, enabled: bool) -> None: ...

    def set_deadlines(self, deadlines: Mapping[str, datetime | None]) -> None: ...

    def passed(self, at: datetime) -> list[JobState]:
        """Jobs whose deadline was not later than `at` and that are not kept as missed, the earliest deadline first."""
        ...

    def next_deadline(self, after: datetime) -> datetime | None:
        """The earliest deadline later than that of a job that is not kept as missed."""
        ...

    def flip(self, flips: Sequence[Flip], now: datetime) -> list[Flip]:
        """Stores those whose job is still kept as `old` (and still has the flip's deadline, if that names one), in this
        order; these, with their ids and since when the job was what it was."""
        ...

    def prune_flips(self, before: datetime, limit: int) -> int:
        """Forgets those seen before that instant; the number, `limit` at most."""
        ...

    def versions(self, since: datetime, jobs: Collection[str] | None = None) -> list[ScheduleVersion]:
        """Schedule versions of these jobs (None: of all) valid at some time after `since`, by job and `valid_from`."""
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
