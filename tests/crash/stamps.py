"""What children write down by themselves: when they start, live on and end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

RESOLUTION = 0.011
"""Seconds by which two stamps may be in the wrong order: the time since boot is told in hundredths."""

# No fork: the shell reads the time since boot from /proc and appends one line with one write.
_LINE = (
    'read u _ < /proc/uptime; echo "{kind} $SCHED_JOB_NAME ${{SCHED_SCHEDULED_FOR:--}} $SCHED_RUN_ID $SCHED_ATTEMPT '
    '$SCHED_FENCE $u ${{SCHED_REPORT_FILE%/*}}" >> {file}'
)


@dataclass(frozen=True)
class Stamp:
    """`kind`: S start, T lives on, E end. `instant` and `at` are in seconds since 1970 (`at` is converted from the time
    since boot); no instant: nothing scheduled it. `place`: where its daemon keeps what its runs write."""

    kind: str
    job: str
    instant: int | None
    run: str
    attempt: int
    fence: int
    at: float
    place: str = ""


@dataclass
class Ran:
    """What the children of one run wrote: per attempt (start, end or None). `lived`: its last sign of life; `places`:
    where each attempt ran."""

    run: str
    job: str
    instant: int | None
    attempts: dict[int, tuple[float, float | None]] = field(default_factory=dict)
    lived: dict[int, float] = field(default_factory=dict)
    fences: dict[int, int] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)

    @property
    def first(self) -> float:
        return min(start for start, _ in self.attempts.values())

    @property
    def last(self) -> float:
        return max(self.lived.values())


def stamp_command(kind: str, file: Path) -> str:
    """What a shell does to write a stamp."""
    return _LINE.format(kind=kind, file=file)


def boot() -> float:
    """When the machine was booted, in seconds since 1970: what turns times since boot into instants."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def read_stamps(file: Path) -> list[Stamp]:
    """In the order in which they were written."""
    booted = boot()
    stamps = []
    for line in file.read_text().splitlines() if file.exists() else []:
        kind, job, instant, run, attempt, fence, at, place = line.split()
        due = None if instant == "-" else round(datetime.fromisoformat(instant).timestamp())
        stamps.append(Stamp(kind, job, due, run, int(attempt), int(fence), booted + float(at), place))
    return stamps


def attempts_of(stamps: Iterable[Stamp]) -> dict[str, Ran]:
    """By run."""
    found: dict[str, Ran] = {}
    for stamp in stamps:
        ran = found.setdefault(stamp.run, Ran(stamp.run, stamp.job, stamp.instant))
        start, end = ran.attempts.get(stamp.attempt, (stamp.at, None))
        ran.attempts[stamp.attempt] = (min(start, stamp.at), stamp.at if stamp.kind == "E" else end)
        ran.lived[stamp.attempt] = max(stamp.at, ran.lived.get(stamp.attempt, stamp.at))
        ran.fences[stamp.attempt] = stamp.fence
        ran.places[stamp.attempt] = stamp.place
    return found
