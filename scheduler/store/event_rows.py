"""Events and refused requests as rows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, select

from scheduler.core.event import Event, NewEvent, Reject, Via
from scheduler.core.signature import Refusal
from scheduler.store import tables as t

_E = t.events.c
_SCAN_AT = select(func.min(t.listings.c.at)).where(t.listings.c.event == _E.seq).scalar_subquery()
BARE = (
    _E.seq,
    _E.source,
    _E.id,
    _E.via,
    _E.received_at,
    _E.type,
    _E.subject,
    _E.occurred_at,
    _E.content_type,
    _E.vouched_by,
    _E.found_by,
    _E.problems,
    _E.webhook_at,
    _SCAN_AT.label("scan_at"),
    _E.duplicates,
    _E.held,
)
"""The columns that `bare` takes, in their order."""


def event_row(seq: int, told: Sequence[NewEvent]) -> dict[str, Any]:
    """A new event that was told so often."""
    event = told[0]
    webhooks = [one for one in told if one.via is Via.WEBHOOK]
    return {
        "seq": seq,
        "source": event.source,
        "id": event.id,
        "via": event.via.value,
        "received_at": event.received_at,
        "type": event.type,
        "subject": event.subject,
        "occurred_at": event.occurred_at,
        "content_type": event.content_type,
        "vouched_by": event.vouched_by,
        "found_by": event.found_by,
        "problems": event.problems,
        "webhook_at": webhooks[0].received_at if webhooks else None,
        "duplicates": max(len(webhooks) - 1, 0),
        "held": event.held,
    }


def bare(row: Sequence[Any]) -> Event:
    """Of a row of `BARE`: without body and headers."""
    seq, source, event, via, received, kind, subject, occurred, content, vouched, found, problems, *rest = row
    webhook_at, scan_at, duplicates, held = rest[:4]
    return Event(
        seq,
        source,
        event,
        Via(via),
        received,
        kind,
        subject,
        occurred,
        content,
        (),
        b"",
        vouched,
        found,
        tuple(problems),
        webhook_at,
        scan_at,
        duplicates,
        held,
    )


def pairs(headers: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in headers)


def reject_row(reject: Reject) -> dict[str, Any]:
    return {
        "source": reject.source,
        "at": reject.at,
        "reason": reject.reason.value,
        "why": reject.why,
        "headers": reject.headers,
        "query": reject.query,
        "accepted_at": reject.accepted_at,
        "body": reject.body,
        "dropped": reject.dropped,
    }


def reject_of(row: Row[Any]) -> Reject:
    return Reject(
        row.seq,
        row.source,
        row.at,
        Refusal(row.reason),
        row.why,
        pairs(row.headers),
        bytes(row.body),
        row.query,
        row.accepted_at,
        row.dropped,
    )
