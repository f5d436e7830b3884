"""Making events of what a list holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.core.compensator import Json, ListedEvent, Undecodable, Window
from scheduler.core.errors import InvalidInput, attempt, refuse_all
from scheduler.core.event_fields import FieldReader
from scheduler.core.place import NotApplicable, Place
from scheduler.core.preset import EventFields
from scheduler.core.sender_time import sender_instant
from scheduler.core.signature import Headers, Rejected

_RAW = 64 << 10
"""Characters that are kept of an item that cannot be read."""
_NO_HEADERS = Headers()

Item = ListedEvent | Undecodable


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads items of a list as the source reads bodies of webhooks, so that both give the same event. `body`: where the
    webhook's body lies in an item (None: the item is it); the other places are looked up in the body."""

    fields: FieldReader
    body: Place | None = None

    @staticmethod
    def of(fields: EventFields, body: str = "") -> Reader:
        """InvalidInput that names the option for a place that cannot be one; its `others` tell of further ones."""
        wrong: list[InvalidInput] = []
        reader = attempt(wrong, lambda: FieldReader(fields))
        lies = attempt(wrong, lambda: place("body", body)) if body else None
        refuse_all(wrong)
        assert reader is not None, "it was refused otherwise"
        return Reader(reader, lies)

    def read(self, item: Json, headers: Mapping[str, str] | None = None) -> Item:
        """Never raises. `headers` are those that its webhook has."""
        document = item
        try:
            if self.body is not None:
                document = self.body.find(item, _NO_HEADERS)
        except NotApplicable as error:
            return undecodable(item, str(error))
        if not isinstance(document, dict):
            return undecodable(item, "it is no object")
        given = headers or {}
        facts = self.fields.read(document, Headers.of(given.items()))
        if isinstance(facts, Rejected):
            return undecodable(item, facts.why)
        if facts.occurred_at is None:
            return undecodable(item, "; ".join(facts.problems) or "nothing says when it occurred")
        return ListedEvent(facts.id, facts.occurred_at, document, facts.type, facts.subject, given)


def place(name: str, text: str) -> Place:
    """InvalidInput with the option's name in front."""
    try:
        return Place.of(text)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error.reason}", hint=error.hint) from None


def undecodable(item: Json, why: str) -> Undecodable:
    """Its time is given if it says one under a usual name."""
    raw = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return Undecodable(raw[:_RAW], why, _time(item))


def within(window: Window, items: Iterable[Item]) -> tuple[Item, ...]:
    """Without what lies outside of the window. What does not say when it was belongs to every window."""
    return tuple(one for one in items if one.occurred_at is None or window.start <= one.occurred_at <= window.end)


def all_before(window: Window, items: Iterable[Item]) -> bool:
    """Whether there are events, and all of them lie before the window: then a list that begins with the newest has
    nothing more to say. One is not enough: lists may be a little out of order."""
    return _all(items, lambda at: at < window.start - timedelta(seconds=1))


def all_after(window: Window, items: Iterable[Item]) -> bool:
    """The same for a list that begins with the oldest."""
    return _all(items, lambda at: at > window.end + timedelta(seconds=1))


def _all(items: Iterable[Item], beyond: Callable[[datetime], bool]) -> bool:
    times = [one.occurred_at for one in items if isinstance(one, ListedEvent)]
    return bool(times) and all(map(beyond, times))


def _time(item: Json) -> datetime | None:
    if not isinstance(item, dict):
        return None
    named = (item.get(name) for name in ("occurred_at", "created_at", "created", "timestamp", "updated_at"))
    return next((found for found in map(sender_instant, named) if found is not None), None)
