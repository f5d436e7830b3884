"""Short ways to write jobs, instants and what a planner finds in the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.core.job import Action, Blackout, Job
from scheduler.core.model import Cause, JobState, Pause, Skip, Status
from scheduler.core.policy import Plan, plan
from scheduler.core.requests import Due, Unfinished
from scheduler.core.schedule import Schedule

TICK = timedelta(microseconds=1)


def at(text: str) -> datetime:
    """`2026-03-01 08:00`, UTC unless an offset is written."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def job(expressions: str | Sequence[str] | None = "* * * * *", zone: str = "UTC", **keys: Any) -> Job:
    texts = (expressions,) if isinstance(expressions, str) else expressions
    schedule = Schedule(tuple(texts), zone) if texts is not None else None
    return Job("job", "{}", "", Action("command", {}), schedule=schedule, lock="job:job", **keys)


def fixed(start: datetime, end: datetime, reason: str = "fixed") -> Blackout:
    return Blackout(reason, start=start, end=end)


def recurring(text: str, length: timedelta, zone: str = "UTC", reason: str = "recurring") -> Blackout:
    return Blackout(reason, schedule=Schedule((text,), zone), length=length)


def pause(start: datetime, until: datetime | None, reason: str = "paused") -> Pause:
    return Pause("job", start, until, reason, "ops")


def unfinished(
    run: str,
    status: Status = Status.RUNNING,
    cause: Cause = Cause.SCHEDULE,
    attempt: int | None = None,
    holder: str | None = None,
    asked: str = "2026-01-01",
) -> Unfinished:
    tried = attempt if attempt is not None else int(status is Status.RUNNING)
    return Unfinished("job", run, 1, status, cause, tried, at(asked), holder)


def owed(since: datetime | None, runs: Iterable[Unfinished] = (), pauses: Iterable[Pause] = ()) -> Due:
    """What the planner finds of a job whose first instant without a row is `since`."""
    return Due(JobState("job", 1, "", True, since, at("2020-01-01")), tuple(runs), tuple(pauses))


def judged(
    job: Job, since: datetime, now: datetime, runs: Iterable[Unfinished] = (), pauses: Iterable[Pause] = ()
) -> Plan:
    return plan(job, owed(since, runs, pauses), now)


def words(one: Plan) -> list[str]:
    """The entries, each as one line: `03-01 08:00:00 schedule`, `03-01 08:00:00..09:00:00 2 missed`."""
    lines = []
    for entry in one.entries:
        if isinstance(entry, Skip):
            until = f"..{entry.last:%H:%M:%S}" if entry.last != entry.first else ""
            lines.append(f"{entry.first:%m-%d %H:%M:%S}{until} {entry.count} {entry.reason}")
        else:
            lines.append(f"{entry.instant:%m-%d %H:%M:%S} {entry.cause}")
    return lines
