"""What is known about a provider of webhooks, as plain data: the defaults of its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from string import Template


@dataclass(frozen=True, slots=True)
class EventFields:
    """Where an event's fields lie: JMESPath into the body, or `header:NAME`; "" = nowhere (`id`: must be written)."""

    id: str = ""
    type: str = ""
    occurred_at: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider is answered when its event is stored. `body` None: our own JSON."""

    status: int = 202
    body: str | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Handshake:
    """A request that is no event, to be answered and not stored: the one in which `place` (as in EventFields) has the
    value `equals`. It is verified like any other. The answer is the text found at `echo` ("" = empty)."""

    name: str
    place: str
    equals: str
    echo: str = ""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Example:
    """An event as the provider sends it, before it is signed. In the body and the headers' values `$id` stands for
    letters and digits that make it unique, `$seconds` and `$instant` (RFC 3339) for its time."""

    body: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def filled(self, id: str, at: datetime) -> tuple[bytes, dict[str, str]]:  # noqa: A002  # as in the text
        """Body and headers of one event."""
        values = {"id": id, "seconds": int(at.timestamp()), "instant": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
        headers = {name: Template(value).substitute(values) for name, value in self.headers.items()}
        return Template(self.body).substitute(values).encode("utf-8"), headers


@dataclass(frozen=True, slots=True)
class Preset:
    """What is known about a provider: the defaults of a source. `retries_for`: how long after the event it may still
    send it by itself (None: not known), `looks_back`: how long its list of events reaches back; an inbox keeps ids
    longer than both. `documentation`: where the provider says so."""

    title: str
    event: EventFields = EventFields()
    tolerance: timedelta = timedelta(minutes=5)
    keep: timedelta = timedelta(days=45)
    answer: Answer = Answer()
    handshakes: tuple[Handshake, ...] = ()
    retries_for: timedelta | None = None
    looks_back: timedelta | None = None
    documentation: str = ""
    example: Example | None = None
