"""Sources of events, and events as they come from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.core.errors import SchedulerError
from scheduler.core.event import Event, NewEvent, Stored, Via
from scheduler.core.model import Run
from tests.engine.doubles import START
from tests.engine.rig import Rig, jobs

SIGNED = {
    "signature": {"scheme": "hmac", "header": "X-Signature", "secrets": [{"env": "SECRET"}]},
    "event": {"id": "id", "type": "type", "occurred_at": "at", "subject": "about"},
}


def subscribed(given: Mapping[str, Mapping[str, Any]] | None = None, /, **sources: Mapping[str, Any]) -> str:
    """A jobs.yaml: jobs that get the events of `payments` unless they say otherwise; what a source has beyond the usual
    by its name."""
    entries = {name: {"on_event": "payments", **keys} for name, keys in (given or {"ticket": {}}).items()}
    return jobs(entries, sources={name: {**SIGNED, **sources.get(name, {})} for name in {"payments": 1, **sources}})


def event(id: str = "e1", /, source: str = "payments", **how: Any) -> NewEvent:  # noqa: A002  # as the field
    given: dict[str, Any] = {"via": Via.WEBHOOK, "received_at": START, "type": "payment.failed", **how}
    body = json.dumps({"id": id, **given.pop("data", {})}).encode()
    return NewEvent(source, id, **{"body": body, **given})


def told(rig: Rig, *events: NewEvent) -> list[Stored]:
    """What became of them, all in one."""
    answers = ask(rig, *events)
    assert all(isinstance(one, Stored) for one in answers), answers
    return [one for one in answers if isinstance(one, Stored)]


def ask(rig: Rig, *events: NewEvent) -> Sequence[Stored | SchedulerError]:
    found: list[Stored | SchedulerError] = []
    rig.inbox.submit(events, None, lambda served: found.extend(served[0][1]))
    return found


def kept(rig: Rig, id: str, source: str = "payments") -> Event | None:  # noqa: A002
    """The event as it stands in the inbox."""
    with rig.store.read() as tx:
        found: Event | None = tx.events.get(source, id)
    return found


def ids(runs: Sequence[Run]) -> list[str]:
    """The events of which these runs are; those that were asked for once more say "again"."""
    return [run.key.split(":", 2)[2] if run.key.startswith("event:") else "again" for run in runs]
