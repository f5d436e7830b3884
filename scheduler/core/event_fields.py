"""What an event says of itself: its id, type, time and subject, taken from where its source says they lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .errors import InvalidInput, attempt, refuse_all
from .model import Json
from .place import NotApplicable, Place
from .preset import EventFields
from .sender_time import sender_instant
from .signature import Headers, Refusal, Rejected

LONGEST = 512
"""Characters of an id, type or subject."""


@dataclass(frozen=True, slots=True)
class EventFacts:
    """`type` and `subject` are "" and `occurred_at` is None where nothing is said or what is said cannot be used;
    `problems` are sentences about the latter. An event is not refused for them: it would be lost."""

    id: str
    type: str = ""
    occurred_at: datetime | None = None
    subject: str = ""
    problems: tuple[str, ...] = ()


class FieldReader:
    """Compiled once per source. InvalidInput, naming the field, for a place that cannot be one, and without an id; its
    `others` tell of further places."""

    def __init__(self, fields: EventFields) -> None:
        if not fields.id:
            raise InvalidInput("nothing says where the event's id lies", hint="write event: {id: …}")
        wrong: list[InvalidInput] = []
        found = attempt(wrong, lambda: _place("id", fields.id))
        self._type = attempt(wrong, lambda: _maybe("type", fields.type))
        self._occurred_at = attempt(wrong, lambda: _maybe("occurred_at", fields.occurred_at))
        self._subject = attempt(wrong, lambda: _maybe("subject", fields.subject))
        refuse_all(wrong)
        assert found is not None, "it was refused otherwise"
        self._id = found

    def read(self, document: Json, headers: Headers) -> EventFacts | Rejected:
        """Rejected only for the id: without one, or with one for all, every event would be a duplicate."""
        try:
            value = self._id.find(document, headers)
        except NotApplicable as error:
            return Rejected(Refusal.EVENT_ID_MISSING, str(error))
        if value is None or value == "":
            return Rejected(Refusal.EVENT_ID_MISSING, f"there is no event id at {self._id.text}")
        id = _word(value)  # noqa: A001  # as the field is called everywhere
        if id is None:
            return Rejected(Refusal.EVENT_ID_MALFORMED, f"what is at {self._id.text} is not {_WORD}")
        problems: list[str] = []
        return EventFacts(
            id,
            _text("type", self._type, document, headers, problems),
            _instant(self._occurred_at, document, headers, problems),
            _text("subject", self._subject, document, headers, problems),
            tuple(problems),
        )


_WORD = f"a number or a text of at most {LONGEST} printable characters"


def _place(name: str, text: str) -> Place:
    try:
        return Place.of(text)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error.reason}", hint=error.hint) from None


def _maybe(name: str, text: str | None) -> Place | None:
    return _place(name, text) if text else None


def _word(value: Json) -> str | None:
    """The value as an id; None for what is none. 1 and "1" are the same."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    try:
        text = str(value).strip()
    except ValueError:  # an integer of thousands of digits
        return None
    return text if text.isprintable() and 0 < len(text) <= LONGEST else None


def _find(name: str, place: Place | None, document: Json, headers: Headers, problems: list[str]) -> Json:
    if place is None:
        return None
    try:
        found = place.find(document, headers)
    except NotApplicable as error:
        problems.append(f"{name}: {error}")
        return None
    if found is None or found == "":
        problems.append(f"{name}: there is nothing at {place.text}")
        return None
    return found


def _text(name: str, place: Place | None, document: Json, headers: Headers, problems: list[str]) -> str:
    found = _find(name, place, document, headers, problems)
    if found is None or place is None:
        return ""
    word = _word(found)
    if word is None:
        problems.append(f"{name}: what is at {place.text} is not {_WORD}")
    return word or ""


def _instant(place: Place | None, document: Json, headers: Headers, problems: list[str]) -> datetime | None:
    found = _find("occurred_at", place, document, headers, problems)
    if found is None or place is None:
        return None
    instant = sender_instant(found)
    if instant is None:
        problems.append(f"occurred_at: what is at {place.text} is not an instant: seconds, milliseconds, RFC 3339")
    return instant
