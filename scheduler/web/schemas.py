"""What answers look like, as JSON Schema: the components of the OpenAPI document.

Clients must expect further keys. A key is never left out; where its value is unknown, or not for this caller, it is
null.
"""

from __future__ import annotations

from scheduler.web.values import Schema

TEXT: Schema = {"type": ["string", "null"]}
INSTANT: Schema = {"type": ["string", "null"], "format": "date-time"}
NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": ["integer", "null"]}
FLAG: Schema = {"type": ["boolean", "null"]}
ANY: Schema = {}
OBJECT: Schema = {"type": ["object", "null"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": ["array", "null"], "items": schema}


def words(*known: str) -> Schema:
    return {"enum": [*known, None]}


def record(**properties: Schema) -> Schema:
    """An object that has all of these keys."""
    return {"type": "object", "properties": properties, "required": list(properties)}


STATUS = words("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELED", "SKIPPED")
CAUSE = words("schedule", "catch_up", "backfill", "manual", "api", "event", "replay", "after", "retry")

_RUN = {
    "type": {"const": "run"},
    "run_id": TEXT,
    "short_id": TEXT,
    "job": TEXT,
    "status": STATUS,
    "cause": CAUSE,
    "reason": TEXT,
    "scheduled_for": INSTANT,
    "created_at": INSTANT,
    "started_at": INSTANT,
    "finished_at": INSTANT,
    "duration_s": NUMBER,
    "duration_exact": FLAG,
    "elapsed_s": NUMBER,
    "attempt": COUNT,
    "exit_code": COUNT,
    "signal": COUNT,
    "error": TEXT,
    "progress": NUMBER,
    "message": TEXT,
    "result": ANY,
    "queue": TEXT,
    "priority": COUNT,
    "waits_for": TEXT,
    "not_before": INSTANT,
    "waiting": maybe(ref("Waiting")),
    "has_payload": FLAG,
    "discarded_at": INSTANT,
    "retry_of": TEXT,
    "note": TEXT,
    "author": TEXT,
    "node": TEXT,
    "status_url": TEXT,
    "log_url": TEXT,
}

_EVENT = {
    "source": TEXT,
    "id": TEXT,
    "event_type": TEXT,
    "subject": TEXT,
    "via": words("webhook", "scan"),
    "occurred_at": INSTANT,
    "received_at": INSTANT,
    "webhook_at": INSTANT,
    "scan_at": INSTANT,
    "missed": FLAG,
    "held": FLAG,
    "duplicates": COUNT,
    "found_by": TEXT,
    "vouched_by": TEXT,
    "problems": many(TEXT),
    "runs": many(
        record(run_id=TEXT, short_id=TEXT, job=TEXT, status=STATUS, cause=CAUSE, created_at=INSTANT),
    ),
}

COMPONENTS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457. `detail` says what is wrong, `hint` what to do about it.",
        "properties": {
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "hint": {"type": "string"},
        },
        "required": ["title", "status", "detail"],
    },
    "Waiting": record(
        kind=words("time", "pause", "lock", "queue"),
        until=INSTANT,
        lock=TEXT,
        holder_run=TEXT,
        holder_job=TEXT,
        queue=TEXT,
        ahead=COUNT,
    ),
    "Run": record(**_RUN),
    "Canceled": record(**_RUN, asked_before=FLAG, asked_at=INSTANT, kill_at=INSTANT),
    "RunDetail": record(
        **_RUN, key=TEXT, payload=ANY, checkpoint=ANY, attempts=many(ref("Attempt")), retried_by=many(TEXT)
    ),
    "Attempt": record(
        number=COUNT,
        node=TEXT,
        started_at=INSTANT,
        finished_at=INSTANT,
        duration_s=NUMBER,
        outcome=TEXT,
        exit_code=COUNT,
        signal=COUNT,
        error=TEXT,
        left=COUNT,
    ),
    "Skip": record(
        type={"const": "skip"},
        job=TEXT,
        status={"const": "SKIPPED"},
        cause=CAUSE,
        reason=words("overlap", "missed", "paused", "blackout", "lock"),
        first=INSTANT,
        last=INSTANT,
        count=COUNT,
        blocked_by=TEXT,
        detail=TEXT,
    ),
    "RunStatus": record(status=STATUS, progress=NUMBER, message=TEXT),
    "Accepted": record(
        run_id=TEXT,
        job=TEXT,
        status=STATUS,
        status_url=TEXT,
        log_url=TEXT,
        new=FLAG,
        queue_position=COUNT,
        estimated_wait_s=NUMBER,
        waiting=maybe(ref("Waiting")),
        holdup=TEXT,
    ),
    "AcceptedMany": record(
        runs=many({"anyOf": [ref("Accepted"), record(error=ref("Problem"))]}),
        accepted=COUNT,
        repeated=COUNT,
        refused=COUNT,
    ),
    "Backfilled": record(
        job=TEXT,
        dry_run=FLAG,
        runs=many(record(scheduled_for=INSTANT, run_id=TEXT)),
        left_out=many(record(scheduled_for=INSTANT, why=TEXT, run_id=TEXT)),
    ),
    "Page": record(entries=many({"anyOf": [ref("Run"), ref("Skip")]}), cursor=TEXT),
    "Pause": record(job=TEXT, **{"from": INSTANT}, until=INSTANT, reason=TEXT, author=TEXT),
    "Job": record(
        name=TEXT,
        description=TEXT,
        state=TEXT,
        enabled=FLAG,
        schedule=many(TEXT),
        timezone=TEXT,
        next_run_at=INSTANT,
        deadline_at=INSTANT,
        since=INSTANT,
        removed_at=INSTANT,
        last_success_at=INSTANT,
        last_failure_at=INSTANT,
        consecutive_failures=COUNT,
        alarm=TEXT,
        running=many(ref("Run")),
        waiting=COUNT,
        last=maybe(ref("Run")),
        last_skip=maybe(ref("Skip")),
        pause=maybe(ref("Pause")),
        upcoming_pause=maybe(ref("Pause")),
        queue=TEXT,
        team=TEXT,
        severity=TEXT,
        tags=many(TEXT),
    ),
    "Event": record(**_EVENT),
    "EventDetail": record(
        **_EVENT, content_type=TEXT, headers=many(many(TEXT)), size=COUNT, body=TEXT, body_base64=TEXT
    ),
    "StoredEvent": record(
        source=TEXT, event=TEXT, duplicate=FLAG, runs=many(record(job=TEXT, run_id=TEXT)), number=COUNT, at=INSTANT
    ),
    "Reject": record(
        number=COUNT,
        source=TEXT,
        at=INSTANT,
        reason=TEXT,
        why=TEXT,
        headers=many(many(TEXT)),
        query=TEXT,
        size=COUNT,
        beginning=TEXT,
    ),
    "Trouble": record(
        kind=TEXT,
        about=TEXT,
        job=TEXT,
        since=INSTANT,
        what=TEXT,
        command=TEXT,
        run_id=TEXT,
        error=TEXT,
        last_line=TEXT,
    ),
    "Occurrence": record(job=TEXT, utc=INSTANT, local=TEXT, zone=TEXT, note=TEXT, excused=TEXT),
    "Node": record(
        id=TEXT,
        host=TEXT,
        pid=COUNT,
        version=TEXT,
        state=TEXT,
        started_at=INSTANT,
        beat_at=INSTANT,
        lease_s=NUMBER,
        slots=COUNT,
        running=COUNT,
        queues=many(TEXT),
        generation=COUNT,
        clock_offset_s=NUMBER,
    ),
    "Queue": record(
        name=TEXT,
        concurrency=COUNT,
        rate=NUMBER,
        burst=COUNT,
        running=COUNT,
        ready=COUNT,
        waiting=OBJECT,
        oldest_ready_at=INSTANT,
        tokens=NUMBER,
    ),
    "Generation": record(id=COUNT, hash=TEXT, created_at=INSTANT, author=TEXT, tzdata=TEXT, schedule_code=COUNT),
    "Status": record(
        ok=FLAG,
        now=INSTANT,
        version=TEXT,
        node=TEXT,
        checks=OBJECT,
        problems=many(ref("Trouble")),
        jobs=COUNT,
        states=OBJECT,
        running=COUNT,
        waiting=COUNT,
        paused=COUNT,
        dead_letters=COUNT,
        next_run_at=INSTANT,
        configuration=maybe(ref("Generation")),
        nodes=many(ref("Node")),
    ),
    "Reloaded": record(
        applied=FLAG,
        generation=COUNT,
        hash=TEXT,
        added=many(TEXT),
        changed=many(TEXT),
        removed=many(TEXT),
        unchanged=COUNT,
        pending=OBJECT,
        changes=OBJECT,
        warnings=many(TEXT),
    ),
    "Audit": record(
        since=INSTANT,
        until=INSTANT,
        clean=FLAG,
        jobs=many(
            record(
                job=TEXT,
                clean=FLAG,
                expected=COUNT,
                ran=COUNT,
                skipped=OBJECT,
                unaccounted=many(INSTANT),
                unaccounted_count=COUNT,
                surplus=many(INSTANT),
                not_recomputable=many(TEXT),
            )
        ),
    ),
    "Token": record(
        id=TEXT,
        name=TEXT,
        role=words("read", "operate", "ping"),
        created_at=INSTANT,
        author=TEXT,
        expires_at=INSTANT,
        revoked_at=INSTANT,
        used_at=INSTANT,
        live=FLAG,
    ),
}
