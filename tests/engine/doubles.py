"""What stands in for the world around the engine: clocks, executors, attempts and the switch, all told by the test."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from scheduler.core.errors import Unavailable
from scheduler.core.execution import Launch
from scheduler.core.model import FailReason, Output
from scheduler.core.outcome import Canceled, Failed, GivenBack, Outcome, Succeeded
from scheduler.core.requests import Report

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
"""A Monday."""


@dataclass
class TurnedClock:
    """`turn` moves all clocks, `step` only the wall, `suspend` all but the monotonic one."""

    wall: datetime = START
    seconds: float = 1000.0
    asleep: float = 0.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.seconds

    def boottime(self) -> float:
        return self.seconds + self.asleep

    def turn(self, **by: float) -> datetime:
        delta = timedelta(**by)
        self.wall += delta
        self.seconds += delta.total_seconds()
        return self.wall

    def step(self, **by: float) -> datetime:
        self.wall += timedelta(**by)
        return self.wall

    def suspend(self, **by: float) -> datetime:
        self.asleep += timedelta(**by).total_seconds()
        return self.step(**by)


class ScriptedExecutor:
    """Holds every attempt until the test says how it ends. `obedient` False: asking it to end does nothing. `refuses`:
    its `start` raises."""

    kind: ClassVar[str] = "command"

    def __init__(self) -> None:
        self.live: dict[str, tuple[Launch, Callable[[Outcome], None]]] = {}
        self.started: list[Launch] = []
        self.ended: list[tuple[str, str]] = []
        self.obedient = True
        self.refuses: Exception | None = None

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.started.append(launch)
        self.live[launch.run.id] = (launch, done)

    def end(self, run: str, why: str) -> None:
        self.ended.append((run, why))
        if self.obedient and run in self.live:
            outcomes: dict[str, Outcome] = {
                "timeout": Failed(FailReason.TIMEOUT, "ran too long"),
                "drain": GivenBack(started=True),
                "lost": Failed(FailReason.LOST, "its node lost its right"),
            }
            self.finish(run, outcomes.get(why, Canceled(why)))

    def finish(self, run: str, outcome: Outcome | None = None) -> None:
        _, done = self.live.pop(run)
        done(outcome or Succeeded(exit_code=0))

    def finish_all(self, outcome: Outcome | None = None) -> int:
        runs = list(self.live)
        for run in runs:
            self.finish(run, outcome)
        return len(runs)

    def of(self, job: str) -> list[str]:
        """The runs of that job that it holds."""
        return [run for run, (launch, _) in self.live.items() if launch.job.name == job]


class NoAttempts:
    """Attempts that all printed one line."""

    def __init__(self) -> None:
        self.pending: list[Report] = []
        self.forgotten: list[tuple[str, int]] = []
        self.left: list[tuple[str, int]] = []
        self.unreadable: set[str] = set()
        self.words: dict[str, list[Report]] = {}

    def outputs(self, runs: Collection[tuple[str, int]]) -> list[Output]:
        for run, _ in runs:
            if run in self.unreadable:
                raise OSError(5, "Input/output error", run)
        return [Output(run, attempt, b"printed\n", b"", 0, True) for run, attempt in runs]

    def reports(self) -> list[Report]:
        reports, self.pending = self.pending, []
        return reports

    def last_words(self, runs: Collection[tuple[str, int]]) -> list[Report]:
        return [report for run, _ in runs for report in self.words.get(run, [])]

    def forget(self, runs: Collection[tuple[str, int]]) -> None:
        self.forgotten.extend(runs)

    def left_behind(self) -> list[tuple[str, int]]:
        return self.left


@dataclass
class FakeSwitch:
    silent: float = 0.0
    trusted: list[tuple[float | None, float | None]] = field(default_factory=list)
    pings: int = 0
    killed: int = 0
    gone: bool = False

    def trust(self, term_at: float | None, kill_at: float | None) -> None:
        self.trusted.append((term_at, kill_at))

    def ping(self) -> None:
        if self.gone:
            raise Unavailable("gone")
        self.pings += 1

    def silent_for(self) -> float:
        return self.silent

    def kill(self) -> None:
        self.killed += 1
