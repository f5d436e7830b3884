"""`Retry-After` in all the forms that servers send."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=1)
INSTEAD = timedelta(minutes=15)
"""Taken for values beyond `LONGEST`, which are mistakes (an epoch, milliseconds)."""


def wait(text: str | None, now: datetime) -> timedelta | None:
    """The wait that the header asks for: seconds (a fraction is rounded up, less than none is none) or an HTTP date,
    relative to `now`. None for whatever is neither."""
    text = (text or "").strip()
    if not text or not text.isascii():
        return None
    try:
        seconds = float(text)
    except ValueError:
        instant = http_date(text)
        if instant is None:
            return None
        seconds = (instant - now).total_seconds()
    if math.isnan(seconds):
        return None
    if seconds > LONGEST.total_seconds():
        return INSTEAD
    return timedelta(seconds=max(0, math.ceil(seconds)))


def http_date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
