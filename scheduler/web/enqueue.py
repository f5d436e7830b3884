"""`POST /v1/jobs/{name}/runs`: one run, or up to a thousand, on disk before the answer."""

from __future__ import annotations

import json
from typing import Any

from anyio import to_thread
from starlette.requests import Request

from scheduler.core.access import Access
from scheduler.core.commands import Accepted, IfBusy, RunRequest
from scheduler.core.errors import InvalidInput, NotFound, SchedulerError, Unavailable
from scheduler.core.model import Cause, Status, WaitsFor
from scheduler.core.queries import Queries
from scheduler.core.trace import given
from scheduler.web.answers import Answer, Malformed, problem_of
from scheduler.web.backend import Backend, backend_of
from scheduler.web.fields import Anything, Body, Flag, Items, Text
from scheduler.web.inputs import BODY_LIMIT, plain_name
from scheduler.web.operation import Operation, author_of
from scheduler.web.parameters import Header
from scheduler.web.porter import Porter
from scheduler.web.present import Shown, waiting_json
from scheduler.web.shapes import ref

BATCH_LIMIT = 8 << 20
"""Bytes of a request for many runs; each payload is at most BODY_LIMIT."""
MOST = 1_000

PAYLOAD = Anything("payload", "What the run is about; null is none.")
REASON = Text("reason", "Kept with the run.")
FINGERPRINT = Flag("fingerprint", "Without a key: the same payload for this job gives the same run.")
KEY = Header("Idempotency-Key", "The same key and payload give the same run; with another payload it is refused.")
START = Body(
    (
        PAYLOAD,
        REASON,
        FINGERPRINT,
        Text("if_busy", "What a run without payload does while the job has an unfinished one.", of=tuple(IfBusy)),
        Text("cause", "`manual`: for a person, whom pauses do not hold up.", of=("api", "manual")),
        Items(
            "runs",
            "Many at once; payload, reason, key and fingerprint are then given for each. One that is refused does not "
            "concern the others.",
            (PAYLOAD, REASON, FINGERPRINT, Text("key", "As the header Idempotency-Key.", KEY.limit, ascii=True)),
            MOST,
        ),
    ),
    BATCH_LIMIT,
)


async def start_runs(request: Request) -> Answer:
    """Starts a run now: 202 for a new one, 200 if this `Idempotency-Key` has already made it. It is on disk before the
    answer. A `traceparent` header is handed on: the run belongs to that trace.

    With `runs`, up to a thousand at once: 202 if any is new, with one answer for each, in their order."""
    backend = backend_of(request)
    name = plain_name(request.path_params["name"])
    body = await START.read(request)
    many, key = body.pop("runs"), KEY.read(request)
    if many is not None and (key is not None or body["payload"] is not None or body["reason"] or body["fingerprint"]):
        raise InvalidInput("with `runs`, payload, reason, key and fingerprint are given for each of them")
    wanted = [{**body, "key": key}] if many is None else [{**body, **one} for one in many]
    if not _is_small(request):
        for one in wanted:
            _check_size(one["payload"])
    author = author_of(request)
    trace = given(request.headers.get("traceparent"))
    answers = await porter_of(request).ask([_asked(name, author, one, trace) for one in wanted])
    if many is None:
        return await _one(backend, answers[0])
    _raise_shared(answers)
    return await _several(backend, answers)


def porter_of(request: Request) -> Porter[RunRequest, Accepted | SchedulerError]:
    porter: Porter[RunRequest, Accepted | SchedulerError] = request.app.state.porter
    return porter


def _is_small(request: Request) -> bool:
    """Nothing in it can be too large, even if each of its letters is written as `\\u…`."""
    announced = request.headers.get("content-length", "")
    return announced.isdigit() and int(announced[:18]) * 6 <= BODY_LIMIT


def _check_size(payload: Any) -> None:
    if len(json.dumps(payload)) > BODY_LIMIT:
        raise Malformed(
            f"a payload is larger than {BODY_LIMIT} bytes",
            status=413,
            hint="put large data into a file or bucket and send its address",
        )


def _asked(job: str, author: str, one: dict[str, Any], trace: str | None) -> RunRequest:
    payload = one["payload"]
    return RunRequest(
        job,
        author,
        Cause(one["cause"] or "api"),
        one["reason"],
        payload,
        payload is not None,
        IfBusy(one["if_busy"] or "refuse"),
        one["key"] or None,
        one["fingerprint"],
        trace,
    )


async def _one(backend: Backend, answer: Accepted | SchedulerError) -> Answer:
    if isinstance(answer, SchedulerError):
        raise answer
    shown = accepted_json(answer)
    pending = answer.status is Status.PENDING and not answer.begun
    if pending and (shown["waiting"] is None or backend.holdup() is not None):
        shown |= await to_thread.run_sync(_look_up, backend, answer)
    return Answer(shown, status_code=202 if answer.new else 200, headers={"Location": shown["status_url"]})


async def _several(backend: Backend, answers: list[Accepted | SchedulerError]) -> Answer:
    shown = [
        {"error": problem_of(one).content} if isinstance(one, SchedulerError) else accepted_json(one) for one in answers
    ]
    new = sum(isinstance(one, Accepted) and one.new for one in answers)
    refused = sum(isinstance(one, SchedulerError) for one in answers)
    content = {"runs": shown, "accepted": new, "repeated": len(answers) - new - refused, "refused": refused}
    return Answer(content, status_code=202 if new else 200)


def _raise_shared(answers: list[Accepted | SchedulerError]) -> None:
    """What is wrong with all of them is the answer to the whole."""
    for kind in (NotFound, Unavailable):
        if all(isinstance(one, kind) for one in answers):
            error = answers[0]
            assert isinstance(error, SchedulerError)
            raise error


def accepted_json(one: Accepted) -> Shown:
    """`waiting` is null where the database must be asked for it."""
    url = f"/v1/runs/{one.run}"
    waiting = None
    if one.ahead is not None and not one.begun:
        waiting = _waiting("queue", queue=one.queue, ahead=one.ahead)
    elif one.waits_for is WaitsFor.PAUSE:
        waiting = _waiting("pause")
    return {
        "run_id": one.run,
        "job": one.job,
        "status": str(Status.RUNNING if one.begun else one.status),
        "status_url": url,
        "log_url": f"{url}/log",
        "new": one.new,
        "queue_position": one.ahead,
        "estimated_wait_s": one.wait,
        "waiting": waiting,
        "holdup": None,
    }


def _waiting(kind: str, **known: Any) -> Shown:
    empty = dict.fromkeys(("until", "lock", "holder_run", "holder_job", "queue"))
    return {"kind": kind, **empty, "holder_dead": False, "ahead": 0, **known}


def _look_up(backend: Backend, answer: Accepted) -> Shown:
    """What a run waits for: its lock, its time, or, of one that was made before, its place; and why nobody will start
    it before something changes."""
    with backend.readable.queries() as queries:
        waiting = queries.waiting([answer.run]).get(answer.run)
        holdup = _holdup(backend, queries, answer.queue)
    if waiting is None:
        return {"holdup": holdup}
    position = waiting.ahead if waiting.kind == "queue" else None
    return {"waiting": waiting_json(waiting), "queue_position": position, "holdup": holdup}


def _holdup(backend: Backend, queries: Queries, queue: str) -> str | None:
    """None if another node serves that queue."""
    reason = backend.holdup()
    if reason is None:
        return None
    others = (view.node for view in queries.nodes() if view.node.state == "live" and view.node.id != backend.node())
    return None if any(one.queues is None or queue in one.queues for one in others) else reason


operations = [
    Operation(
        "POST",
        "/v1/jobs/{name}/runs",
        start_runs,
        Access.OPERATE,
        {"anyOf": [ref("Accepted"), ref("AcceptedMany")]},
        headers=(KEY,),
        body=START,
        status=202,
        repeated=True,
    )
]
