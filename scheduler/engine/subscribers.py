"""Which jobs an event concerns, and what the run of each gets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduler.core.document import document_of
from scheduler.core.errors import InvalidInput
from scheduler.core.event import Event, NewEvent, Via
from scheduler.core.job import Job
from scheduler.core.model import Cause, Json, NewRun, Run
from scheduler.core.offsets import EPOCH
from scheduler.core.place import NotApplicable, Place
from scheduler.core.signature import Headers
from scheduler.core.source import OnEvent, Order
from scheduler.core.type_globs import type_matches
from scheduler.core.value_object import value_object
from scheduler.engine.new_run import new_run

DEEPEST = 200
"""Levels of a body that is handed on as data: what is deeper could be read, and not written again from every place."""
_MICROSECOND = timedelta(microseconds=1)


@value_object
class Subscriber:
    """A job with the condition that its author wrote, compiled once (None: every event of the types)."""

    job: Job
    on_event: OnEvent
    where: Place | None


@value_object
class Told:
    """An event with its body read once for all its subscribers. `seq` is that of its row; `late`: a newer one of its
    subject came before it."""

    event: NewEvent | Event
    seq: int
    data: Json
    late: bool = False

    @property
    def rank(self) -> tuple[datetime, str]:
        """The order of events; without a time of the provider's that of their coming."""
        return self.event.occurred_at or self.event.received_at, self.event.id


def by_source(jobs: Iterable[Job]) -> dict[str, tuple[Subscriber, ...]]:
    """The enabled ones of these jobs that subscribe to events, by source, in their order."""
    found: dict[str, tuple[Subscriber, ...]] = {}
    for job in jobs:
        if job.on_event is not None and job.enabled:
            where = Place.of(job.on_event.where) if job.on_event.where else None
            one = Subscriber(job, job.on_event, where)
            found[job.on_event.source] = (*found.get(job.on_event.source, ()), one)
    return found


def told(event: NewEvent | Event, seq: int) -> Told:
    """A body that is neither JSON nor a form, or nested without measure, is a text."""
    try:
        data = document_of(event.body, event.content_type)
    except InvalidInput:
        return Told(event, seq, _as_text(event.body))
    openers = event.body.count(b"[") + event.body.count(b"{")
    deep = openers > DEEPEST and _depth(data) > DEEPEST
    return Told(event, seq, _as_text(event.body) if deep else data)


def _as_text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _depth(data: Json) -> int:
    level, depth = [data], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return depth


def may_concern(subscribers: Iterable[Subscriber], event: NewEvent | Event) -> bool:
    """Whether it is of a type that one of them wants: else its body need not be read."""
    return any(type_matches(one.on_event.types, event.type) for one in subscribers)


def concerns(subscriber: Subscriber, told: Told) -> tuple[bool, str]:
    """Whether the job gets a run of this event, and what is to be said about that. A condition that cannot be evaluated
    counts as true: the event would be lost."""
    if not type_matches(subscriber.on_event.types, told.event.type):
        return False, ""
    if subscriber.where is None:
        return True, ""
    try:
        found = subscriber.where.find(told.data, Headers(told.event.headers))
    except NotApplicable as error:
        return True, f"where counts as true: {error}"
    return _is_true(found), ""


def _is_true(found: Json) -> bool:
    """As JMESPath means it: 0 is true; an empty text, list or object is not."""
    return found is not None and found is not False and (not isinstance(found, str | list | Mapping) or len(found) > 0)


def event_run(subscriber: Subscriber, told: Told, now: datetime, note: str = "") -> NewRun:
    """The one run that the job gets of this event, by whichever way and however often it comes."""
    key = f"event:{told.event.source}:{told.event.id}"
    return _carrying(subscriber, told, told.event.via, Cause.EVENT, now, key, note=note)


def replayed_run(subscriber: Subscriber, told: Told, now: datetime, author: str, note: str) -> NewRun:
    """One more run of an event, like no other."""
    return _carrying(subscriber, told, Via.REPLAY, Cause.REPLAY, now, None, note=note, author=author)


def _carrying(
    subscriber: Subscriber, told: Told, via: Via, cause: Cause, now: datetime, key: str | None, **more: Any
) -> NewRun:
    payload = _payload(told, via)
    run = new_run(subscriber.job, cause, now, key, payload=payload, has_payload=True, event=told.seq, **more)
    if subscriber.on_event.order is not Order.SUBJECT or not told.event.subject:
        return run
    rank = (told.rank[0] - EPOCH) // _MICROSECOND
    return replace(run, lock=subject_lock(run.job, told.event.subject), rank=rank)


def after_dead(run: Run, events: Sequence[str]) -> Run:
    """As it is handed to its handler: one that has a place in an order knows the events before it that gave up."""
    if run.rank is None or not isinstance(run.payload, dict):
        return run
    return replace(run, payload={**run.payload, "dead_before": list(events)})


def subject_lock(job: str, subject: str) -> str:
    """Of an event that names no subject there is nothing to put in order: its run has the lock of its job."""
    return f"event:{job}:{subject}"


def _payload(told: Told, via: Via) -> Json:
    event = told.event
    return {
        "schema": 1,
        "event": {
            "id": event.id,
            "source": event.source,
            "type": event.type,
            "occurred_at": None if event.occurred_at is None else _written(event.occurred_at),
            "subject": event.subject,
            "via": str(via),
            "late": told.late,
        },
        "data": told.data,
        "current": None,
    }


def _written(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
