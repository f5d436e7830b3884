"""A sender of webhooks as its owner means it: one entry of `sources` with its preset's defaults applied. Frozen values.

Secrets are named, never held: they are read when a request is verified.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum

from scheduler.core.model import Json
from scheduler.core.preset import Answer, EventFields, Handshake
from scheduler.core.secret import Secret
from scheduler.core.value_object import value_object

MAX_BODY = 1 << 20
"""Bytes of a request's body, unless the source says otherwise."""


@value_object
class FetchCurrent:
    """Before a run of an event starts, the state of what the event is about is asked for. `url` is a template like an
    `http` job's; `headers` may hold secrets."""

    url: str
    headers: Mapping[str, str | Secret] = field(default_factory=dict)


@value_object
class Source:
    """`scheme` and `options` name the way of signing (`scheduler.signatures`); `url` is the address as registered with
    the provider. `keep` is how long an event's id is remembered; `rate` is in requests per second (None: no limit),
    beyond `burst` they are answered 429; `paused`: events are stored and answered as ever, and their runs wait.

    `definition_text` is its canonical JSON form (no secrets in it) and `fingerprint` a hash of that.
    """

    name: str
    definition_text: str
    fingerprint: str
    scheme: str
    event: EventFields
    keep: timedelta
    tolerance: timedelta
    options: Mapping[str, Json] = field(default_factory=dict)
    preset: str | None = None
    secrets: tuple[Secret, ...] = ()
    url: str = ""
    max_body: int = MAX_BODY
    answer: Answer = field(default_factory=Answer)
    handshakes: tuple[Handshake, ...] = ()
    paused: bool = False
    rate: float | None = None
    burst: int = 1
    fetch_current: FetchCurrent | None = None

    @property
    def definition(self) -> Mapping[str, Json]:
        """`definition_text`, read anew at each call."""
        found: Mapping[str, Json] = json.loads(self.definition_text)
        return found


class Order(StrEnum):
    """In which order the events of one source become runs of a job at work."""

    NONE = "none"
    SUBJECT = "subject"
    """One at a time per subject, the oldest of those that wait first."""


class OnDead(StrEnum):
    """What follows a dead letter where order matters."""

    GO_ON = "go_on"
    HOLD = "hold"
    """Later events of the subject wait until somebody retries or discards it."""


@value_object
class OnEvent:
    """This job gets one run per event of `source` whose type one of the globs `types` matches (none: every type) and
    for which `where`, a JMESPath expression over the body, is true ("": every event)."""

    source: str
    types: tuple[str, ...] = ()
    where: str = ""
    order: Order = Order.NONE
    on_dead: OnDead = OnDead.GO_ON


@value_object
class Compensate:
    """This job scans the events that a provider lists for those whose webhook never came. `options` are what the
    compensator's model validated (`with:`); secrets in them are named, not held."""

    source: str
    compensator: str
    settle: timedelta = timedelta(minutes=5)
    margin: timedelta = timedelta(hours=1)
    first_window: timedelta = timedelta(hours=24)
    alarm_after: timedelta = timedelta(hours=1)
    options: Mapping[str, Json | Secret] = field(default_factory=dict)
