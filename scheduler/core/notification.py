"""Notifications: what waits for a channel, what became of it, how the channel stands. Frozen values; what to do with
them is decided in core.notifying."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from scheduler.core.tiding import Tiding
from scheduler.core.value_object import value_object


class Fate(StrEnum):
    """What became of a notification. WAITING until it is SENT or was tried for long enough (FAILED)."""

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


@value_object
class Waiting:
    """A notification that was not sent yet. `attempts`: how often it was tried."""

    id: int
    tiding: Tiding
    created_at: datetime
    attempts: int = 0


@value_object
class Result:
    """What an attempt came to; WAITING: it is tried again at `next_at`. `together`: how many went in one message."""

    id: int
    fate: Fate
    next_at: datetime
    error: str | None = None
    together: int = 1


@value_object
class Pace:
    """How many messages a channel may be sent at once, as of `at`; None: it was never sent any."""

    messages: float = 0.0
    at: datetime | None = None


@value_object
class Standing:
    """How a channel stands. `failing_since`: when its attempts began to fail, `error` what it said last."""

    pace: Pace = field(default_factory=Pace)
    not_before: datetime | None = None
    """The channel itself asked to be left alone until then."""
    failing_since: datetime | None = None
    error: str | None = None
    answered_at: datetime | None = None
    """When it last took a message."""


@value_object
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


@value_object
class ChannelView:
    """A channel that was ever used: how it stands, and how many notifications wait for it."""

    name: str
    standing: Standing
    waiting: int
    oldest: datetime | None
