"""`POST /v1/sources/{source}/test`: an event made up and signed as the provider would, taken as if it had come.

The daemon signs, because it alone has the secrets; nothing of the signature is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.errors import InvalidInput, Refused, SchedulerError
from scheduler.core.event import MADE_UP, NewEvent, Stored
from scheduler.core.ids import new_id
from scheduler.core.place import Place
from scheduler.core.preset import Answer as Said
from scheduler.core.preset import Example
from scheduler.core.signature import Headers, Incoming, LiveSecret
from scheduler.core.stamp import to_text
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.fields import Body, Text
from scheduler.web.operation import Operation
from scheduler.web.porter import Porter
from scheduler.web.received import reception_of, stored_json
from scheduler.web.reception import Reception
from scheduler.web.shapes import ref

TEST = Body(
    (
        Text("type", "The event's type.", 200),
        Text("subject", "What it is about.", 200),
        Text("body", "The body to send, instead of one that is made up.", 64 << 10),
    )
)
_UNSIGNED = LiveSecret("nobody", "")


async def send_test(request: Request) -> Answer:
    """Makes up an event of a source and takes it as if its provider had sent it.

    It is signed with the source's first secret, verified and stored, and its jobs run."""
    backend = backend_of(request)
    reception = reception_of(backend, request.path_params["source"])
    wanted = await TEST.read(request)
    reception.secrets.changed()
    paused = reception.source.paused
    now = datetime.now(UTC)
    event = f"test{new_id()[-12:]}"
    usual = _usual_type(backend, reception.source.name)
    body, headers = _made_up(reception, wanted, usual, event, now)
    incoming = _signed(reception, body, headers, event, now)
    found = reception.judge(incoming, now)
    if isinstance(found, Said):
        raise Refused("this is a handshake, which is answered and not stored", hint="send another body")
    if not isinstance(found, NewEvent):
        raise Refused(f"{found.reason}: {found.why}", hint="give a body that fits what the source says below `event`")
    porter: Porter[NewEvent, Stored | SchedulerError] = request.app.state.inbox_porter
    (answer,) = await porter.ask([replace(found, vouched_by=MADE_UP)])
    if isinstance(answer, SchedulerError):
        raise answer
    return Answer(stored_json(answer, paused=paused) | {"number": None, "at": to_text(now)}, status_code=202)


def _made_up(
    reception: Reception, wanted: Mapping[str, str], usual: str, event: str, now: datetime
) -> tuple[bytes, dict[str, str]]:
    fields = reception.source.event
    example = _example(reception)
    if example is not None and not any(wanted.values()):
        body, headers = example.filled(event, now)
        return body, {"Content-Type": "application/json", **headers}
    document: dict[str, Any] = {}
    headers = {"Content-Type": "application/json"}
    values = ("id", fields.id, event), ("type", fields.type, wanted["type"] or usual)
    more = ("occurred_at", fields.occurred_at, int(now.timestamp())), ("subject", fields.subject, wanted["subject"])
    for name, place, value in (*values, *more):
        if place and value != "" and not _put(document, headers, Place.of(place), value) and not wanted["body"]:
            raise Refused(
                f"{reception.source.name}: nobody can guess a body in which {name} lies at {place}",
                hint="send one: --body @event.json",
            )
    return wanted["body"].encode("utf-8", "replace") or json.dumps(document).encode(), headers


def _usual_type(backend: Backend, source: str) -> str:
    """One that a job of this source asks for by name, so that something happens."""
    configuration = backend.configuration()
    jobs = configuration.jobs.values() if configuration is not None else ()
    asked = [one.on_event.types for one in jobs if one.on_event is not None and one.on_event.source == source]
    return next((types[0].replace("*", "test") for types in asked if types), "test")


def _example(reception: Reception) -> Example | None:
    preset = reception.scheme.preset
    # One whose fields were moved is not where the provider's own event has them.
    return preset.example if preset is not None and preset.event == reception.source.event else None


def _put(document: dict[str, Any], headers: dict[str, str], place: Place, value: Any) -> bool:
    """Whether it is known how to put a value where this place finds it."""
    if place.headers:
        headers[place.headers[0]] = str(value)
        return True
    inner: Any = document
    for name in place.path[:-1]:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            return False
    if place.path:
        inner[place.path[-1]] = value
    return bool(place.path)


def _signed(reception: Reception, body: bytes, headers: Mapping[str, str], event: str, now: datetime) -> Incoming:
    secrets = reception.secrets.now()
    if not secrets and reception.scheme.needs_secret:
        raise Refused(
            f"{reception.source.name} has no secret that can be read: {'; '.join(reception.secrets.problems)}"
        )
    signer = secrets[0] if secrets else _UNSIGNED
    try:
        signed = reception.scheme.sign(body, signer, now=now, url=reception.source.url, delivery=event)
    except InvalidInput as error:
        raise Refused(error.reason, hint=error.hint) from None
    fields = {name.lower(): value for name, value in [*headers.items(), *signed.headers.items()]}
    return Incoming(Headers.of(fields.items()), signed.body, reception.source.url, signed.query)


operations = [
    Operation(
        "POST",
        "/v1/sources/{source}/test",
        send_test,
        Access.OPERATE,
        ref("StoredEvent"),
        body=TEST,
        status=202,
    )
]
