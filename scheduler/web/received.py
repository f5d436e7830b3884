"""`/v1/events`: what sources told, and what was refused at their door."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from anyio import to_thread
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.errors import NotFound, Refused
from scheduler.core.event import Stored, Via
from scheduler.core.event_queries import EventFilter
from scheduler.core.inbox import Replayed, Reverified
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
UNHANDLED = Flag("unhandled", "Those with a job of which no run has completed, and those that are held.")
LIMIT = Number("limit", "Entries on a page.", 50, 1, 1000)
CURSOR = Text("cursor", "The `cursor` of the page before.", r"\d{1,18}")
REPLAY = Body((Names("jobs", "Only these jobs.", required=False), TextField("reason", "Kept with the runs.")))
MOST_AGAIN = 1_000
LARGEST = (1 << 63) - 1
AGAIN = Body(
    (
        NumberField("limit", "So many, oldest first.", 100, 1, MOST_AGAIN),
        NumberField("after", "Those after this one: `after` of the answer before.", 0, 0, LARGEST),
    )
)
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
    backend = backend_of(request)
    with backend.readable.queries() as queries:
        page = queries.events(which, limit, cursor)
    if not page.events and cursor is None:
        _must_exist(backend, which.source)
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
    """Requests that were refused and not accepted since, newest first.

    `kept` are all there are. Of each source and reason a bounded number is kept; `dropped` of those that came before
    `dropped_before` are not any more.
    """
    backend = backend_of(request)
    source, limit = SOURCE.read(request), LIMIT.read(request)
    backend.inbox.keep_refused()
    with backend.readable.queries() as queries:
        found = queries.rejects(source, limit)
    if not found.kept:
        _must_exist(backend, source)
    shown = [reject_json(one) for one in found.rejects]
    dropped = {"dropped": found.dropped, "dropped_before": when(found.dropped_before)}
    return Answer({"rejects": shown, "kept": found.kept, **dropped})


async def reverify(request: Request) -> Answer:
    """Verifies refused requests of a source again, oldest first.

    With the secrets of today and the time at which each came. Those that are right now are stored, and make runs, as if
    they had just come. `after` of the answer, if it is not null, asks for those that come next."""
    backend = backend_of(request)
    reception = reception_of(backend, request.path_params["source"])
    wanted = await AGAIN.read(request)
    reception.secrets.changed()

    def again() -> Reverified:
        judge = reception.judge_again
        return backend.inbox.reverify(reception.source.name, lambda reject: judge(reject, backend.now()), **wanted)

    done = await to_thread.run_sync(again)
    paused = reception.source.paused
    stored = [
        stored_json(one, paused=paused) | {"number": reject.seq, "at": when(reject.at)} for reject, one in done.stored
    ]
    refused = [
        {"number": reject.seq, "at": when(reject.at), "reason": str(verdict.reason), "why": verdict.why}
        for reject, verdict in done.refused
    ]
    return Answer({"source": reception.source.name, "stored": stored, "refused": refused, "after": done.after})


def reception_of(backend: Backend, name: str) -> Reception:
    """NotFound, with the names there are; InvalidInput for one that cannot be verified at all."""
    found = backend.receptions.find(plain_name(name))
    if found is None:
        raise _no_source(backend, name)
    return found


def stored_json(one: Stored, *, paused: bool) -> Shown:
    """`paused`: its source is, so that it is held if it is new."""
    held = paused and one.new
    return {"source": one.source, "event": one.id, "duplicate": not one.new, "held": held, "runs": _runs(one.runs)}


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


def _must_exist(backend: Backend, source: str) -> None:
    """NotFound for a source of which nothing was found, if the configuration does not have it."""
    configuration = backend.configuration()
    if source and (configuration is None or source not in configuration.sources):
        raise _no_source(backend, source)


def _no_source(backend: Backend, name: str) -> NotFound:
    configuration = backend.configuration()
    known = sorted(configuration.sources) if configuration is not None else []
    close = get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known) or 'none'}"
    return NotFound(f"there is no source {name!r}", hint=hint)


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
    Operation(
        "GET",
        "/v1/rejects",
        rejects,
        Access.READ,
        record(rejects=many(ref("Reject")), kept=COUNT, dropped=COUNT, dropped_before=INSTANT),
        query=(SOURCE, LIMIT),
    ),
    Operation(
        "POST",
        "/v1/sources/{source}/reverify",
        reverify,
        Access.OPERATE,
        record(
            source=TEXT,
            stored=many(ref("StoredEvent")),
            refused=many(record(number=COUNT, at=INSTANT, reason=TEXT, why=TEXT)),
            after=COUNT,
        ),
        body=AGAIN,
    ),
]
