"""Events and refused requests as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from scheduler.core.event import Event, Reject
from scheduler.core.event_queries import EventDetail, EventRun
from scheduler.core.ids import short
from scheduler.web.present import Shown, when

BEGINNING = 2_000
"""Bytes of a refused request's body that are shown."""


def event_json(event: Event, runs: Sequence[EventRun]) -> Shown:
    """As lists show it: without its body."""
    return {
        "source": event.source,
        "id": event.id,
        "event_type": event.type,
        "subject": event.subject,
        "via": str(event.via),
        "occurred_at": when(event.occurred_at),
        "received_at": when(event.received_at),
        "webhook_at": when(event.webhook_at),
        "scan_at": when(event.scan_at),
        "missed": event.missed,
        "held": event.held,
        "duplicates": event.duplicates,
        "found_by": event.found_by,
        "vouched_by": event.vouched_by,
        "problems": list(event.problems),
        "runs": [
            {
                "run_id": one.run,
                "short_id": short(one.run),
                "job": one.job,
                "status": str(one.status),
                "cause": one.cause,
                "created_at": when(one.created_at),
            }
            for one in runs
        ],
    }


def event_detail_json(detail: EventDetail) -> Shown:
    """`body` if it is text, else `body_base64`."""
    event = detail.event
    text = _text(event.body)
    return event_json(event, detail.runs) | {
        "content_type": event.content_type,
        "headers": [list(pair) for pair in event.headers],
        "size": len(event.body),
        "body": text,
        "body_base64": base64.b64encode(event.body).decode("ascii") if text is None else None,
    }


def reject_json(reject: Reject) -> Shown:
    beginning = reject.body[:BEGINNING].decode("utf-8", "backslashreplace")
    return {
        "number": reject.seq,
        "source": reject.source,
        "at": when(reject.at),
        "reason": str(reject.reason),
        "why": reject.why,
        "headers": [list(pair) for pair in reject.headers],
        "query": reject.query,
        "size": len(reject.body),
        "beginning": beginning,
    }


def _text(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None
