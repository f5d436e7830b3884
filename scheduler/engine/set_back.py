"""A clock that was set back: until it has caught up, jobs wait for their first instant without an entry."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler.core.stamp import from_text, to_text
from scheduler.core.value_object import value_object


@value_object
class SetBack:
    """Instants up to `until` may have their entries already, although the clock shows less; noticed `at` (by the new
    time)."""

    until: datetime
    at: datetime

    @property
    def by(self) -> timedelta:
        return self.until - self.at

    def written(self) -> str:
        return f"{to_text(self.until)} {to_text(self.at)}"

    @classmethod
    def read(cls, text: str | None) -> SetBack | None:
        """The inverse of `written`; None for what was never written."""
        if text is None:
            return None
        until, _, at = text.partition(" ")
        return cls(from_text(until), from_text(at))


def further_back(known: SetBack | None, reached: datetime, now: datetime) -> SetBack:
    """Set back at `now` when planning had come to `reached`: what was still to be caught up with before counts on."""
    if known is not None and known.until > reached:
        return SetBack(known.until, now)
    return SetBack(reached, now)
