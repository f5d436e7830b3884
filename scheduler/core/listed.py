"""From an item of a provider's list to the event that its webhook would have been."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import replace
from datetime import datetime

from scheduler.core.compensator import ListedEvent, Page, Undecodable
from scheduler.core.event import NewEvent, Via
from scheduler.core.event_fields import LONGEST, EventFacts, FieldReader
from scheduler.core.signature import Headers
from scheduler.core.source import Source

VOUCHED_BY = "api"
"""Nobody signed it: we asked for it ourselves, over a connection that we opened."""


class ListReader:
    """Reads listed events where the source's webhooks are read, so that both are the same event."""

    def __init__(self, source: Source) -> None:
        self._source = source.name
        self._fields = FieldReader(source.event)

    def checked(self, page: Page, known: Container[str]) -> Page:
        """The page; items that cannot be events of this source have become Undecodable. One whose id is not the one
        that its webhook would have must not get in: the webhook would come as another event. `known` are in."""
        return replace(page, items=tuple(self._checked(item, known) for item in page.items))

    def event(self, item: ListedEvent, job: str, now: datetime) -> NewEvent:
        """What to store for a checked item. What the body does not say, the compensator does."""
        facts = self._facts(item)
        return NewEvent(
            source=self._source,
            id=item.id,
            via=Via.SCAN,
            received_at=now,
            body=_text(item).encode(),
            type=(facts.type if facts else "") or item.type,
            subject=(facts.subject if facts else "") or item.subject,
            occurred_at=(facts.occurred_at if facts else None) or item.occurred_at,
            content_type="application/json",
            headers=tuple(sorted((name.lower(), value) for name, value in item.headers.items())),
            vouched_by=VOUCHED_BY,
            found_by=job,
        )

    def _checked(self, item: ListedEvent | Undecodable, known: Container[str]) -> ListedEvent | Undecodable:
        if isinstance(item, Undecodable) or item.id in known:
            return item
        if not item.id or len(item.id) > LONGEST or not item.id.isprintable():
            return Undecodable(_text(item), "it has no id, or none that a webhook could have", item.occurred_at)
        facts = self._facts(item)
        if facts is not None and facts.id != item.id:
            why = f"it is listed as {item.id}, and its webhook would be {facts.id}: correct the compensator's id"
            return Undecodable(_text(item), why, item.occurred_at)
        return item

    def _facts(self, item: ListedEvent) -> EventFacts | None:
        """What the source's fields say of it; None where they find no id: a list may lack what a webhook has."""
        facts = self._fields.read(item.body, Headers.of(item.headers.items()))
        return facts if isinstance(facts, EventFacts) else None


def _text(item: ListedEvent) -> str:
    return json.dumps(item.body, ensure_ascii=False, separators=(",", ":"))
