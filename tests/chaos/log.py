"""What the nemesis and the clients wrote down. Times are real ones, in seconds since 1970, whatever clocks were set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EVERYBODY = "*"
"""Whom a trouble concerns if it is not one node: the database, the machine."""


STALL = "stall"
"""The machine let the nemesis itself wait: a fault that nobody planned."""


@dataclass(frozen=True)
class Trouble:
    """One thing that was done. `whom`: a node's name, or EVERYBODY. `healed`: when it was taken back (the process goes
    on or was started anew, the network is whole); `end`: when all was seen to be well again."""

    fault: str
    whom: str
    begin: float
    healed: float
    end: float

    @property
    def disables(self) -> bool:
        """Whether it keeps a node from its work. A node's own clock does not: only the database's counts."""
        return not (self.fault.startswith("clock") and self.whom != EVERYBODY)

    def near(self, first: float, last: float) -> bool:
        return self.begin <= last and first <= self.end

    def __str__(self) -> str:
        whom = "everybody" if self.whom == EVERYBODY else self.whom
        lasted, over = self.healed - self.begin, self.end - self.begin
        return f"{self.fault} of {whom}, taken back after {lasted:.2f} s, over after {over:.2f} s"


@dataclass(frozen=True)
class Step:
    """From a moment between `begin` and `end` on the database's clock was the real one plus `offset` seconds."""

    begin: float
    end: float
    offset: float


@dataclass(frozen=True)
class Rest:
    """A pause of a job: asked for and granted, its end asked for and granted."""

    job: str
    asked: float
    granted: float
    resume_asked: float
    resumed: float


@dataclass(frozen=True)
class Swap:
    """From a moment between `asked` and `answered` on, these were the periods of the jobs, in seconds (None: no more
    instants)."""

    asked: float
    answered: float
    periods: Mapping[str, int | None]


@dataclass(frozen=True)
class Request:
    """A run that was asked for under `key` and accepted as `run`; `cause`: api, or manual (without a payload)."""

    job: str
    key: str
    run: str
    cause: str
    asked: float
    answered: float


@dataclass(frozen=True)
class Told:
    """An event that was answered 2xx; `jobs` want a run of it."""

    id: str
    jobs: tuple[str, ...]
    asked: float
    answered: float


@dataclass(frozen=True)
class Sighting:
    """A process of a job that should not have been there."""

    node: str
    what: str
    at: float


@dataclass
class Log:
    """Threads append to it; who reads it waits until they are done."""

    troubles: list[Trouble] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)
    swaps: list[Swap] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    strays: list[tuple[float, str]] = field(default_factory=list)
    """When which path was asked for without an answer: a node that was stopped does it when it goes on."""
    complaints: list[tuple[float, str]] = field(default_factory=list)
    """What the nemesis saw itself: a node that did not come back, an answer that nobody should get."""
    places: dict[str, str] = field(default_factory=dict)
    """Where a daemon keeps what its runs write → the name of its node."""
