"""The load: jobs that are due every second and write down by themselves when they start and end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.crash.stamps import stamp_command

MARK = "SCHEDULER_CRASH_MARK"
"""In the environment of everything that a job starts: how survivors are found."""

QUIET = "0 0 1 1 *"
"""A schedule that brings nothing more while a campaign ends."""


@dataclass(frozen=True)
class LoadJob:
    name: str
    overlap: str
    seconds: float
    leaves: str = ""
    on_lost: str = "fail"


def jobs(count: int, *, retry: bool = True) -> list[LoadJob]:
    """Most are short, a quarter is longer than its period, a tenth leaves processes behind; all policies occur."""
    made = []
    for number in range(count):
        overlap = {3: "queue", 13: "replace"}.get(number % 20, "skip")
        seconds = 3.0 if number % 4 == 0 or overlap == "replace" else 0.2
        leaves = ""
        if number % 20 == 7:
            leaves = "sleep 300 & "
        elif number % 20 == 17:
            leaves = "setsid sleep 300 & "
        on_lost = "retry" if retry and number % 3 == 0 else "fail"
        made.append(LoadJob(f"load-{number:03d}", overlap, seconds, leaves, on_lost))
    return made


def write(path: Path, stamps: Path, load: list[LoadJob], mark: str, schedule: str = "* * * * * *") -> None:
    lines = [
        "defaults: {timezone: UTC, queue: load, retries: 0, kill_after: 1s}",
        "queues: {load: {concurrency: 2000}}",
        "jobs:",
    ]
    for job in load:
        start, end = (stamp_command(kind, stamps) for kind in "SE")
        command = f"{start}; {job.leaves}sleep {job.seconds}; {end}"
        lines.append(
            f"  {job.name}: {{schedule: '{schedule}', overlap: {job.overlap}, on_lost: {job.on_lost}, "
            f"env: {{{MARK}: {mark}}}, command: '{command}'}}"
        )
    path.write_text("\n".join(lines) + "\n")
