"""Requests of a provider that are no events but want an answer: is anybody there, and is it you?"""

from __future__ import annotations

from collections.abc import Sequence

from .model import Json
from .place import NotApplicable, Place
from .preset import Answer, Handshake
from .signature import Headers

_LONGEST = 4096


class Handshakes:
    """Compiled once per source. InvalidInput for a place that cannot be one."""

    def __init__(self, known: Sequence[Handshake]) -> None:
        self._known = [(one, Place.of(one.place), Place.of(one.echo) if one.echo else None) for one in known]

    def answer(self, document: Json, headers: Headers) -> Answer | None:
        """What to answer a request that is a handshake, None for any other: that is an event. The request was verified
        before."""
        for one, place, echo in self._known:
            if _find(place, document, headers) != one.equals:
                continue
            said = "" if echo is None else _find(echo, document, headers)
            if isinstance(said, str) and len(said) <= _LONGEST:
                return Answer(one.status, said, one.content_type)
        return None


def _find(place: Place, document: Json, headers: Headers) -> Json:
    try:
        return place.find(document, headers)
    except NotApplicable:
        return None
