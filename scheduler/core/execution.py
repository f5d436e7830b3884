"""The seams around the carrying out of attempts: executors, their files, the dead man's switch, clocks and the bus."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import ClassVar, Protocol

from scheduler.core.compensator import Compensator
from scheduler.core.job import Job
from scheduler.core.model import Output, Run
from scheduler.core.outcome import Outcome
from scheduler.core.requests import Report
from scheduler.core.source import FetchCurrent, Source
from scheduler.core.value_object import value_object


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock: aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never step; for time-outs."""
        ...

    def boottime(self) -> float:
        """Seconds that never step and go on while the machine sleeps; for trust."""
        ...


@value_object
class Launch:
    """One attempt to carry out. `environment` holds everything the child gets, secrets included: it is never logged."""

    run: Run
    job: Job
    attempt: int
    environment: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict)
    fetch: FetchCurrent | None = None
    """What is asked first: the answer is `current` in the payload."""


class Executor(Protocol):
    kind: ClassVar[str]
    """The word in jobs.yaml."""

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        """Begins the attempt and returns at once; `done` is called exactly once, from any thread, when everything the
        attempt started is gone. Never raises: what cannot start is an outcome."""
        ...

    def end(self, run: str, why: str) -> None:
        """Asks to end the attempt (`timeout cancel lost drain`): TERM, after `kill_after` KILL. `done` follows,
        with an outcome that means what `why` says, whatever the exit code."""
        ...


class Scanning(Protocol):
    """The engine's side of scans, for the executor that has a provider's list read."""

    def source(self, name: str) -> Source:
        """As it is in force. Raises Refused if there is none."""
        ...

    def scan(self, run: Run, job: Job, compensator: Compensator) -> Outcome:
        """One attempt of a scan job, in the caller's thread: what is listed is asked for page by page, the next one
        when the one before is on disk. What `compensator` raises that its seam does not name goes through; what was on
        disk by then stays, and the next attempt goes on from there."""
        ...


class Attempts(Protocol):
    """What the daemon reads of attempts that it runs or ran: output and reports on disk, before they are shipped."""

    def outputs(self, runs: Collection[tuple[str, int]]) -> list[Output]:
        """Of those that are known to have written nothing there may be none."""
        ...

    def reports(self) -> list[Report]:
        """What live attempts have reported since the last call."""
        ...

    def last_words(self, runs: Collection[tuple[str, int]]) -> list[Report]:
        """All that these ended attempts have said, whether it was told before or not: what a further attempt needs must
        not hang on the last look at a running one."""
        ...

    def forget(self, runs: Collection[tuple[str, int]]) -> None:
        """Their output is in the database: removes what lies on disk."""
        ...

    def left_behind(self) -> list[tuple[str, int]]:
        """(run, attempt) of which something lies on disk and that this process did not start."""
        ...


class Switch(Protocol):
    """The dead man's switch: the supervisor, as the beats see it."""

    def trust(self, term_at: float | None, kill_at: float | None) -> None:
        """Children live until these instants of CLOCK_BOOTTIME (seconds); None: as long as the daemon lives."""
        ...

    def ping(self) -> None: ...

    def silent_for(self) -> float:
        """Seconds for which it was asked and gave no answer; grows only while it is asked."""
        ...

    def kill(self) -> None:
        """Ends a supervisor that no longer answers."""
        ...


class Bus(Protocol):
    def publish(self, name: str, /, **fields: object) -> None: ...

    def together(self) -> AbstractContextManager[None]:
        """What is published meanwhile, in this thread, is one group."""
        ...
