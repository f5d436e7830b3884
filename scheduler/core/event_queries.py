"""What people are shown of events and of refused requests: answered by the store, as in core.queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from datetime import datetime
from typing import Protocol

from scheduler.core.event import Event, Reject, Via
from scheduler.core.model import Status
from scheduler.core.value_object import value_object


@value_object
class EventFilter:
    """Which events a list shows; empty fields do not restrict. `types` are globs (core.type_globs); `since` (inclusive)
    and `until` (exclusive) are compared with when the event was received. `missed`: those that a scan found and whose
    webhook has not come; `unhandled`: those with a job of which no run has completed, and those that
    are held: nobody knows yet whom they concern."""

    source: str = ""
    types: tuple[str, ...] = ()
    subject: str = ""
    via: Via | None = None
    since: datetime | None = None
    until: datetime | None = None
    missed: bool = False
    unhandled: bool = False


@value_object
class EventRun:
    """A run that an event made."""

    run: str
    job: str
    status: Status
    cause: str
    created_at: datetime


@value_object
class EventPage:
    """Events without bodies, the last stored first, and their runs by `seq`, oldest first. `cursor` asks for the page
    after this one; None: there is none."""

    events: tuple[Event, ...]
    runs: Mapping[int, tuple[EventRun, ...]] = field(default_factory=dict)
    cursor: str | None = None


@value_object
class EventDetail:
    """An event with its body."""

    event: Event
    runs: tuple[EventRun, ...] = ()


@value_object
class Rejects:
    """Refused requests that were not accepted since, newest first, out of so many that are `kept`. `dropped`: how many
    are not any more because there were too many; the newest of them came before `dropped_before`."""

    rejects: tuple[Reject, ...]
    kept: int
    dropped: int = 0
    dropped_before: datetime | None = None


class EventQueries(Protocol):
    def events(self, which: EventFilter, limit: int = 50, cursor: str | None = None) -> EventPage:
        """Raises InvalidInput for a cursor that this method did not hand out."""
        ...

    def event(self, source: str, event: str) -> EventDetail | None: ...

    def held(self) -> dict[str, int]:
        """How many events are held, by source; sources without any are left out."""
        ...

    def sources_of(self, event: str, among: Collection[str]) -> list[str]:
        """Those of these sources that have an event of this id, by name."""
        ...

    def rejects(self, source: str = "", limit: int = 50) -> Rejects:
        """Refused requests that were not accepted since ("": of every source)."""
        ...
