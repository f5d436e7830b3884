"""The inbox: the one door through which events come in, by webhook, by scan and by replay. Carried out by the engine,
offered by the faces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

from scheduler.core.errors import SchedulerError
from scheduler.core.event import NewEvent, Reject, Stored
from scheduler.core.signature import Rejected
from scheduler.core.value_object import value_object

Answer = Stored | SchedulerError

Answered = Callable[[list[tuple[Any, list[Answer]]]], None]
"""Takes tickets, each with the answers to its events."""

Judge = Callable[[Reject], NewEvent | Rejected]
"""Verifies a kept request once more, with the secrets of today and the time at which it came."""


@value_object
class Replayed:
    """An event that was handed out once more: `runs` are (job, run id). `passed`: jobs of its source that it does not
    concern."""

    source: str
    event: str
    at: datetime
    runs: tuple[tuple[str, str], ...]
    passed: tuple[str, ...] = ()


@value_object
class Reverified:
    """What became of kept requests: those `stored` now, and those still `refused` with the reason of today. `after`:
    where to go on; None: there are no more."""

    stored: tuple[tuple[Reject, Stored], ...] = ()
    refused: tuple[tuple[Reject, Rejected], ...] = ()
    after: int | None = None


class Inbox(Protocol):
    def submit(self, events: Sequence[NewEvent], ticket: Any, deliver: Answered) -> None:
        """Events that were told. Returns at once; when they and the runs that they make are on disk `deliver` is
        called, in another thread, with this ticket and others that were served in the same commit.

        An answer is Stored, or an error that concerns that event alone: NotFound for a source that the configuration
        in force does not have; Unavailable: nothing was written (or, if the connection broke while it committed, all
        of it: it may be told again). Of an event that is there nothing is made again."""
        ...

    def refuse(self, reject: Reject) -> None:
        """Keeps a refused request, soon and if possible: a bounded number per source and reason, of a flood only the
        last. Returns at once and never raises."""
        ...

    def keep_refused(self) -> None:
        """What was refused here until now is on disk when this returns. Unavailable: it is lost."""
        ...

    def replay(
        self, source: str, event: str, *, author: str, reason: str = "", jobs: Collection[str] | None = None
    ) -> Replayed:
        """A new run for every job that the event concerns today (of `jobs`, if they are given). NotFound for no such
        event or job; Refused if it concerns none of them; Unavailable."""
        ...

    def reverify(self, source: str, judge: Judge, *, limit: int = 100, after: int = 0) -> Reverified:
        """Verifies up to `limit` refused requests of a source again, oldest first, those after the number `after`;
        those that are right now are stored as if they had just come. Never one that came longer ago than the source's
        `keep`: whether its event was handled since is forgotten. NotFound for no such source; Unavailable."""
        ...
