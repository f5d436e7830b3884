"""Instants as text for keys, environment variables and JSON: RFC 3339 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(instant: datetime) -> str:
    """`2026-03-08T07:00:00Z`; a fraction only if there is one."""
    here = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return here.isoformat()[:-6] + "Z"


def from_text(text: str) -> datetime:
    """The inverse of `to_text`; raises ValueError."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return instant.astimezone(UTC)
