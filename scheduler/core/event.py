"""Events: facts that a source told, by webhook or when it was asked. Frozen values without behaviour or I/O."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from scheduler.core.signature import Refusal
from scheduler.core.value_object import value_object

MADE_UP = "send-test"
"""Who vouches for an event that the daemon made up and signed itself: no list of a provider has it."""


class Via(StrEnum):
    """How an event came."""

    WEBHOOK = "webhook"
    SCAN = "scan"
    REPLAY = "replay"
    """Not how one is stored: what a run says that somebody asked for once more."""


@value_object
class NewEvent:
    """An event to store. (`source`, `id`) is unique; a second one with these changes nothing but who was seen to tell
    it. `body` are the bytes as they came; `headers` those that its fields are read from, names in lower case.

    `vouched_by`: which secret signed it, "api" if we asked for it ourselves, or MADE_UP. `found_by`: the scan job that
    found it. `problems` are sentences about fields that could not be read. `occurred_at` is the provider's time.
    `held`: its source is paused, and it makes no run before that is over."""

    source: str
    id: str
    via: Via
    received_at: datetime
    body: bytes = field(repr=False)
    type: str = ""
    subject: str = ""
    occurred_at: datetime | None = None
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    vouched_by: str = ""
    found_by: str = ""
    problems: tuple[str, ...] = ()
    held: bool = False


@value_object
class Event:
    """An event as stored. `seq` orders events by their insertion. `webhook_at`: when its first webhook came, `scan_at`:
    when a scan first saw it in the provider's list (None: not yet); `duplicates` counts further webhooks. `missed`: a
    scan found it, and no webhook has come."""

    seq: int
    source: str
    id: str
    via: Via
    received_at: datetime
    type: str = ""
    subject: str = ""
    occurred_at: datetime | None = None
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    vouched_by: str = ""
    found_by: str = ""
    problems: tuple[str, ...] = ()
    webhook_at: datetime | None = None
    scan_at: datetime | None = None
    duplicates: int = 0
    held: bool = False

    @property
    def missed(self) -> bool:
        return self.via is Via.SCAN and self.webhook_at is None


@value_object
class Known:
    """As much of a stored event as a scan asks for. `missed` as in Event; `listed`: the scan job that asks found it in
    its list before; `undated`: it does not say when it occurred."""

    seq: int
    received_at: datetime
    found_by: str = ""
    missed: bool = False
    listed: bool = False
    undated: bool = False


@value_object
class Stored:
    """What became of an event that was handed in: the row's `seq`, whether it is `new`, and the runs that it made.
    `startable`: one of these waits for nothing but a place."""

    seq: int
    source: str
    id: str
    new: bool
    runs: tuple[tuple[str, str], ...] = ()
    """(job, run id)"""
    startable: bool = False


@value_object
class Reject:
    """A request that was refused, kept so that it can be verified again after a secret was put right. A bounded number
    per source and reason is kept, the newest. `dropped`: older ones of both that are kept no longer, and of which no
    older one that is kept tells."""

    seq: int
    source: str
    at: datetime
    reason: Refusal
    why: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    query: str = field(default="", repr=False)
    accepted_at: datetime | None = None
    """When it was verified again, and stored as an event."""
    dropped: int = 0
