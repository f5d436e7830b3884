"""Jobs whose children write down when they start and end, and whether another one of the same job was still there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.crash.load import MARK
from tests.crash.stamps import Stamp, attempts_of, stamp_command

EVERY_SECOND = "* * * * * *"


@dataclass(frozen=True)
class FaultJob:
    """`seconds`: how long its children take; no `schedule`: it runs when it is asked for."""

    name: str
    seconds: float
    schedule: str | None = EVERY_SECOND
    overlap: str = "skip"
    on_lost: str = "retry"
    more: str = ""
    """Further keys."""


def text(jobs: Iterable[FaultJob], stamps: Path, mark: str) -> str:
    """The jobs file."""
    lines = [
        "defaults: {timezone: UTC, queue: wide, retries: 0, kill_after: 1s}",
        "queues: {wide: {concurrency: 2000}}",
        "jobs:",
    ]
    for job in jobs:
        schedule = f"schedule: '{job.schedule}', " if job.schedule else ""
        lines.append(
            f"  {job.name}: {{{schedule}overlap: {job.overlap}, on_lost: {job.on_lost}, env: {{{MARK}: {mark}}}, "
            f"{job.more}{', ' if job.more else ''}command: '{_command(job, stamps)}'}}"
        )
    return "\n".join(lines) + "\n"


def _command(job: FaultJob, stamps: Path) -> str:
    """Whoever holds the lock on the job's file is alive, and so is everything that it started."""
    start, end, twice = (stamp_command(kind, stamps) for kind in "SEX")
    alone = ""
    if job.overlap != "allow":
        alone = f"exec 9>>{stamps}.{job.name}; flock -n 9 || {{ {twice}; }}; "
    return f"{start}; {alone}sleep {job.seconds}; {end}"


def overlaps(stamps: Iterable[Stamp]) -> list[str]:
    """Children that began while another one of their job lived."""
    return [f"{one.job}: {one.run} attempt {one.attempt} began beside another" for one in stamps if one.kind == "X"]


def doubled(stamps: Iterable[Stamp]) -> list[str]:
    """Instants that several runs ran, attempts that were started twice."""
    starts = [one for one in stamps if one.kind == "S"]
    attempts = Counter((one.run, one.attempt) for one in starts)
    problems = [f"attempt {number} of {run} was started {n} times" for (run, number), n in attempts.items() if n > 1]
    instants = Counter({(one.job, one.instant, one.run) for one in starts if one.instant is not None})
    runs = Counter((job, instant) for job, instant, _ in instants)
    return problems + [f"{job}: {n} runs of instant {at}" for (job, at), n in runs.items() if n > 1]


def unfinished(stamps: Iterable[Stamp]) -> list[str]:
    """Attempts that never wrote their end: something ended them, or they still run."""
    return [
        f"{ran.job}: {ran.run} attempt {number}"
        for ran in attempts_of(one for one in stamps if one.kind in "SE").values()
        for number, (_, end) in ran.attempts.items()
        if end is None
    ]
