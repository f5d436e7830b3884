"""`/v1/events`: what sources told, and what was refused at their door."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.errors import NotFound, Refused
from scheduler.core.event import Stored, Via
from scheduler.core.event_queries import EventFilter
from scheduler.core.inbox import Replayed
from scheduler.web.answers import Answer
from scheduler.web.backend import Backend, backend_of
from scheduler.web.event_json import event_detail_json, event_json, reject_json
from scheduler.web.fields import Body, Names
from scheduler.web.fields import Number as NumberField
from scheduler.web.fields import Text as TextField
from scheduler.web.inputs import plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.parameters import Flag, Instant, Number, Text, Words
from scheduler.web.present import Shown, when
from scheduler.web.reception import Reception
from scheduler.web.shapes import COUNT, INSTANT, TEXT, many, record, ref

SOURCE = Text("source", "Only of this source.")
TYPES = Words("type", "Only of these types; `*` stands for any characters.")
SUBJECT = Text("subject", "Only about this.")
VIA = Words("via", "Only those that came so.", of=(str(Via.WEBHOOK), str(Via.SCAN)))
SINCE = Instant("since", "Not received before this.")
UNTIL = Instant("until", "Received before this.")
MISSED = Flag("missed", "Only those that a scan found and whose webhook has not come.")
UNHANDLED = Flag("unhandled", "Only those with a job of which no run has completed.")
LIMIT = Number("limit", "Entries on a page.", 50, 1, 1000)
CURSOR = Text("cursor", "The `cursor` of the page before.", r"\d{1,18}")
REPLAY = Body((Names("jobs", "Only these jobs.", required=False), TextField("reason", "Kept with the runs.")))
MOST_AGAIN = 1_000
AGAIN = Body((NumberField("limit", "So many of the newest.", 100, 1, MOST_AGAIN),))
LONGEST_ID = 512


def events(request: Request) -> Answer:
    """Events, the last stored first, each with the runs that it made."""
    via = VIA.read(request)
    which = EventFilter(
        SOURCE.read(request),
        TYPES.read(request),
        SUBJECT.read(request),
        Via(via[0]) if len(set(via)) == 1 else None,
        SINCE.read(request),
        UNTIL.read(request),
        MISSED.read(request),
        UNHANDLED.read(request),
    )
    limit, cursor = LIMIT.read(request), CURSOR.read(request) or None
    with backend_of(request).readable.queries() as queries:
        page = queries.events(which, limit, cursor)
    shown = [event_json(event, page.runs.get(event.seq, ())) for event in page.events]
    return Answer({"events": shown, "cursor": page.cursor})


def one_event(request: Request) -> Answer:
    """One event with its body as it came."""
    source, event = plain_name(request.path_params["source"]), _id(request.path_params["id"])
    with backend_of(request).readable.queries() as queries:
        detail = queries.event(source, event)
    if detail is None:
        raise _no_event(event, source)
    return Answer(event_detail_json(detail))


async def replay(request: Request) -> Answer:
    """Hands an event out once more: a new run for each job that it concerns today, or for `jobs`."""
    backend = backend_of(request)
    event = _id(request.path_params["id"])
    body = await REPLAY.read(request)
    source = request.path_params.get("source")
    named = None if source is None else plain_name(source)
    author = author_of(request)

    def hand_out() -> Replayed:
        of = _source_of(backend, event) if named is None else named
        jobs = body["jobs"] or None
        return backend.inbox.replay(of, event, author=author, reason=body["reason"], jobs=jobs)

    done = await to_thread.run_sync(hand_out)
    shown = {"source": done.source, "event": done.event, "at": when(done.at), "passed": list(done.passed)}
    return Answer({**shown, "runs": _runs(done.runs)}, status_code=202)


def rejects(request: Request) -> Answer:
    """Requests that were refused and not accepted since, newest first. A bounded number of each source is kept."""
    source, limit = SOURCE.read(request), LIMIT.read(request)
    with backend_of(request).readable.queries() as queries:
        found = queries.rejects(source, limit)
    return Answer({"rejects": [reject_json(one) for one in found]})


async def reverify(request: Request) -> Answer:
    """Verifies the newest refused requests of a source again.

    With the secrets of today and the time at which each came. Those that are right now are stored, and make runs, as if
    they had just come."""
    backend = backend_of(request)
    reception = reception_of(backend, request.path_params["source"])
    limit = (await AGAIN.read(request))["limit"]
    judge = reception.judge_again
    reception.secrets.changed()
    done = await to_thread.run_sync(
        lambda: backend.inbox.reverify(reception.source.name, lambda reject: judge(reject, backend.now()), limit=limit)
    )
    stored = [stored_json(one) | {"number": reject.seq, "at": when(reject.at)} for reject, one in done.stored]
    refused = [
        {"number": reject.seq, "at": when(reject.at), "reason": str(verdict.reason), "why": verdict.why}
        for reject, verdict in done.refused
    ]
    return Answer({"source": reception.source.name, "stored": stored, "refused": refused})


def reception_of(backend: Backend, name: str) -> Reception:
    """NotFound, with the names there are; InvalidInput for one that cannot be verified at all."""
    found = backend.receptions.find(plain_name(name))
    if found is None:
        configuration = backend.configuration()
        known = sorted(configuration.sources) if configuration is not None else []
        raise NotFound(f"there is no source {name!r}", hint=f"there are {', '.join(known) or 'none'}")
    return found


def stored_json(one: Stored) -> Shown:
    return {"source": one.source, "event": one.id, "duplicate": not one.new, "runs": _runs(one.runs)}


def _runs(runs: Sequence[tuple[str, str]]) -> list[Shown]:
    return [{"job": job, "run_id": run} for job, run in runs]


def _source_of(backend: Backend, event: str) -> str:
    configuration = backend.configuration()
    with backend.readable.queries() as queries:
        found = queries.sources_of(event, configuration.sources if configuration is not None else ())
    if len(found) > 1:
        raise Refused(f"several sources have an event {event!r}: {', '.join(found)}", hint="say which: SOURCE/EVENT")
    if not found:
        raise _no_event(event, None)
    return found[0]


def _no_event(event: str, source: str | None) -> NotFound:
    of = "" if source is None else f" of source {source!r}"
    return NotFound(f"there is no event {event!a}{of}", hint="`schedctl events` lists them")


def _id(text: str) -> str:
    if not text.isprintable() or len(text) > LONGEST_ID:
        raise _no_event(text[:60], None)
    return text


_RUNS = many(record(job=TEXT, run_id=TEXT))
_REPLAYED = record(source=TEXT, event=TEXT, at=INSTANT, runs=_RUNS, passed=many(TEXT))

operations = [
    Operation(
        "GET",
        "/v1/events",
        events,
        Access.READ,
        record(events=many(ref("Event")), cursor=TEXT),
        query=(SOURCE, TYPES, SUBJECT, VIA, SINCE, UNTIL, MISSED, UNHANDLED, LIMIT, CURSOR),
    ),
    Operation("POST", "/v1/events/{id}/replay", replay, Access.OPERATE, _REPLAYED, body=REPLAY, status=202),
    Operation("GET", "/v1/events/{source}/{id}", one_event, Access.READ, ref("EventDetail")),
    Operation("POST", "/v1/events/{source}/{id}/replay", replay, Access.OPERATE, _REPLAYED, body=REPLAY, status=202),
    Operation("GET", "/v1/rejects", rejects, Access.READ, record(rejects=many(ref("Reject"))), query=(SOURCE, LIMIT)),
    Operation(
        "POST",
        "/v1/sources/{source}/reverify",
        reverify,
        Access.OPERATE,
        record(
            source=TEXT,
            stored=many(ref("StoredEvent")),
            refused=many(record(number=COUNT, at=INSTANT, reason=TEXT, why=TEXT)),
        ),
        body=AGAIN,
    ),
]
