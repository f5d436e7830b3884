"""Nouns as JSON. Instants are RFC 3339 in UTC, durations seconds; what is unknown is null, never left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from scheduler.core.hindrances import is_explained
from scheduler.core.ids import short
from scheduler.core.model import Attempt, Node, Pause, Run, Skip, SkipReason
from scheduler.core.queries import Entry, GenerationLine, NodeView, Page, QueueView, RunDetail, Waiting
from scheduler.core.stamp import to_text
from scheduler.web.absence import Absence, absence

Shown = dict[str, Any]


def when(instant: datetime | None) -> str | None:
    return None if instant is None else to_text(instant)


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """By the wall clock; 0 if that was set back meanwhile."""
    return None if start is None or end is None else max(0.0, round((end - start).total_seconds(), 3))


def _worked(one: Run | Attempt) -> float | None:
    """How long it was at work, once it is over. If nobody measured that (`duration_exact` false), how long it can have
    been: from its start to when its end became known."""
    if one.finished_at is None or one.took is None:
        return seconds_between(one.started_at, one.finished_at)
    return round(one.took, 3)


def run_json(run: Run, waiting: Waiting | None = None) -> Shown:
    """A run as lists show it: without payload and checkpoint."""
    return {
        "type": "run",
        "run_id": run.id,
        "short_id": short(run.id),
        "job": run.job,
        "status": str(run.status),
        "cause": str(run.cause),
        "reason": run.reason,
        "scheduled_for": when(run.scheduled_for),
        "created_at": when(run.created_at),
        "started_at": when(run.started_at),
        "finished_at": when(run.finished_at),
        "duration_s": _worked(run),
        "duration_exact": run.took is not None,
        "elapsed_s": seconds_between(run.started_at, run.finished_at),
        "attempt": run.attempt,
        "failures": run.failures,
        "lost": run.lost,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "error": run.error,
        "progress": run.progress,
        "message": run.message,
        "result": run.result,
        "queue": run.queue,
        "priority": run.priority,
        "lock": run.lock,
        "waits_for": None if run.waits_for is None else str(run.waits_for),
        "not_before": when(run.not_before),
        "waiting": None if waiting is None else waiting_json(waiting),
        "has_payload": run.has_payload,
        "discarded_at": when(run.discarded_at),
        "retry_of": run.retry_of,
        "note": run.note,
        "author": run.author,
        "node": run.node,
        "fence": run.fence,
        "cancel": run.cancel,
        "status_url": f"/v1/runs/{run.id}",
        "log_url": f"/v1/runs/{run.id}/log",
    }


def detail_json(detail: RunDetail) -> Shown:
    return run_json(detail.run, detail.waiting) | {
        "key": detail.run.key,
        "payload": detail.run.payload,
        "checkpoint": detail.run.checkpoint,
        "attempts": [attempt_json(attempt) for attempt in detail.attempts],
        "retried_by": list(detail.retried_by),
    }


def attempt_json(attempt: Attempt) -> Shown:
    return {
        "number": attempt.number,
        "node": attempt.node,
        "fence": attempt.fence,
        "started_at": when(attempt.started_at),
        "finished_at": when(attempt.finished_at),
        "duration_s": _worked(attempt),
        "duration_exact": attempt.took is not None,
        "outcome": attempt.outcome,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "error": attempt.error,
        "left": attempt.left,
    }


def skip_json(skip: Skip, nodes: Collection[Node] = ()) -> Shown:
    """`nodes`: those of the time, by which `no_daemon` tells when nobody was there to run what was missed, unless the
    detail says why nobody did."""
    guess = skip.reason is SkipReason.MISSED and not is_explained(skip.detail)
    away = absence(nodes, skip.last) if guess else None
    return {
        "type": "skip",
        "job": skip.job,
        "status": "SKIPPED",
        "cause": "schedule",
        "reason": str(skip.reason),
        "first": when(skip.first),
        "last": when(skip.last),
        "count": skip.count,
        "blocked_by": skip.blocked_by,
        "detail": skip.detail,
        "no_daemon": None if away is None else absence_json(away),
    }


def absence_json(away: Absence) -> Shown:
    return {
        "from": when(away.start),
        "from_exact": away.exact,
        "until": when(away.end),
        "leaving_from": when(away.leaving),
    }


def entry_json(entry: Entry, waiting: Mapping[str, Waiting], nodes: Collection[Node] = ()) -> Shown:
    if entry.run is not None:
        shown = run_json(entry.run, waiting.get(entry.run.id))
    else:
        assert entry.skip is not None
        shown = skip_json(entry.skip, nodes)
    return shown | {"at": when(entry.at)}


def page_json(page: Page, waiting: Mapping[str, Waiting], nodes: Collection[Node] = ()) -> Shown:
    return {"entries": [entry_json(entry, waiting, nodes) for entry in page.entries], "cursor": page.cursor}


def waiting_json(waiting: Waiting) -> Shown:
    return {
        "kind": waiting.kind,
        "until": when(waiting.until),
        "lock": waiting.lock,
        "holder_run": waiting.holder_run,
        "holder_job": waiting.holder_job,
        "holder_dead": waiting.holder_dead,
        "queue": waiting.queue,
        "ahead": waiting.ahead,
    }


def pause_json(pause: Pause | None) -> Shown | None:
    if pause is None:
        return None
    return {
        "job": pause.job,
        "from": when(pause.start),
        "until": when(pause.until),
        "reason": pause.reason,
        "author": pause.author,
    }


def queue_json(view: QueueView) -> Shown:
    return {
        "name": view.queue.name,
        "concurrency": view.queue.concurrency,
        "rate": view.queue.rate,
        "burst": view.queue.burst,
        "running": view.running,
        "ready": view.ready,
        "waiting": dict(view.waiting),
        "oldest_ready_at": when(view.oldest),
        "tokens": view.tokens,
    }


def node_json(view: NodeView) -> Shown:
    node = view.node
    return {
        "id": node.id,
        "short_id": short(node.id),
        "host": node.host,
        "pid": node.pid,
        "version": node.version,
        "state": node.state,
        "started_at": when(node.started_at),
        "beat_at": when(node.beat_at),
        "lease_s": None if node.lease is None else node.lease.total_seconds(),
        "slots": node.slots,
        "running": view.running,
        "queues": None if node.queues is None else list(node.queues),
        "generation": node.generation,
        "clock_offset_s": node.clock_offset,
        "leaving_at": when(node.leaving_at),
        "hints": node.hints,
        "aside": node.aside,
    }


def generation_json(line: GenerationLine) -> Shown:
    return {
        "id": line.id,
        "hash": line.hash,
        "created_at": when(line.created_at),
        "author": line.author,
        "tzdata": line.tzdata,
        "schedule_code": line.schedule_code,
    }
