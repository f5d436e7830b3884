"""Notifications: what waits for a channel, what became of it, how the channel stands. Frozen values; what to do with
them is decided in core.notifying."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from scheduler.core.tiding import Tiding


class Fate(StrEnum):
    """What became of a notification. WAITING until it is SENT or was tried for long enough (FAILED)."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A notification that was not sent yet. `attempts`: how often it was tried."""

    id: int
    tiding: Tiding
    created_at: datetime
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What an attempt came to; WAITING: it is tried again at `next_at`. `together`: how many went in one message."""

    id: int
    fate: Fate
    next_at: datetime
    error: str | None = None
    together: int = 1


@dataclass(frozen=True, slots=True)
class Pace:
    """How many messages a channel may be sent at once, as of `at`; None: it was never sent any."""

    messages: float = 0.0
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a channel stands. `failing_since`: when its attempts began to fail, `error` what it said last."""

    pace: Pace = field(default_factory=Pace)
    not_before: datetime | None = None
    """The channel itself asked to be left alone until then."""
    failing_since: datetime | None = None
    error: str | None = None
    answered_at: datetime | None = None
    """When it last took a message."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One notification as people see it, whatever became of it."""

    id: int
    channel: str
    kind: str
    job: str
    run: str | None
    since: datetime
    created_at: datetime
    fate: Fate
    attempts: int
    next_at: datetime | None
    settled_at: datetime | None
    error: str | None
    together: int


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel that was ever used: how it stands, and how many notifications wait for it."""

    name: str
    standing: Standing
    waiting: int
    oldest: datetime | None
