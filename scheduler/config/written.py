"""A job's effective values in the words of jobs.yaml, and what identifies them.

The definition of a job is itself a job that could be written into the file: every key with its effective value
in its shortest spelling, defaults included, secrets as references. It depends neither on the order of keys nor
on anything else in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from scheduler.config.actions.base import Options
from scheduler.config.elsewhere import NOT_OURS
from scheduler.config.models import on_event as on_event_of
from scheduler.config.models import retries as retries_of
from scheduler.config.models.channel import written_notify
from scheduler.config.models.job import JobModel
from scheduler.core.durations import format_duration
from scheduler.core.job import Action, Job
from scheduler.core.model import Json

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def definition_of(job: Job, model: JobModel, action: Json) -> dict[str, Json]:
    """The definition; `action` is what was written after the action's key, in its shortest spelling."""
    made: dict[str, Json] = {
        "description": job.description,
        "enabled": job.enabled,
        job.action.kind: action,
        "overlap": job.overlap.value,
        "catch_up": job.catch_up.value,
        "catch_up_window": duration_text(job.catch_up_window),
        "catch_up_max": job.catch_up_max,
        "timeout": duration_text(job.timeout),
        "kill_after": duration_text(job.kill_after),
        "leftovers": job.leftovers.value,
        "retries": retries_of.written(job.retries),
        "on_lost": job.on_lost.value,
        "queue": job.queue,
        "priority": job.priority,
        "keep": duration_text(job.keep) if isinstance(job.keep, timedelta) else job.keep,
        "keep_output": duration_text(job.keep_output),
        "log_limit": size_text(job.log_limit),
        "env": dict(job.child.env),
        "secrets": {name: secret.written() for name, secret in model.secrets.items()},
        "heartbeat": model.heartbeat.written(),
        "grace": duration_text(job.watch.grace),
        "alert_after": job.watch.alert_after,
        "severity": job.watch.severity,
        "team": job.watch.team,
        "runbook": job.watch.runbook,
        "tags": list(job.watch.tags),
    }
    if job.payload_retries != job.retries:
        made["payload_retries"] = retries_of.written(job.payload_retries)
    if job.schedule is not None:
        made["schedule"] = list(job.schedule.expressions)
        made["day_match"] = job.schedule.day_match
    if model.timezone is not None:
        made["timezone"] = model.timezone
    if job.after is not None:
        made["after"] = {"job": job.after.job, "on": job.after.on.value.lower()}
    if job.on_event is not None:
        made["on_event"] = on_event_of.written(job.on_event)
    if model.notify:
        made["notify"] = written_notify(model.notify)
    if model.acknowledge:
        made["acknowledge"] = list(model.acknowledge)
    if model.lock is not None:
        made["lock"] = model.lock
    if model.blackouts:
        made["blackouts"] = [_blackout(one.written()) for one in model.blackouts]
    for name in ("workdir", "user", "stdin"):
        value = getattr(job.child, name)
        if value is not None:
            made[name] = value
    limits = model.limits
    if limits is not None:
        shown = {"memory": limits.memory and size_text(limits.memory), "tasks": limits.tasks, "nice": limits.nice}
        made["limits"] = {name: value for name, value in shown.items() if value is not None}
    if job.external:
        return {key: value for key, value in made.items() if key not in NOT_OURS and key != "payload_retries"}
    return made


def with_keys_of_the_file(definition: Mapping[str, Json]) -> dict[str, Json]:
    """A definition for people: only keys that jobs.yaml has. Where `retries` is not written it means two things, and
    its value here is both of them: `{without_payload: 0, with_payload: [1m, 5m, 30m, 2h]}`."""
    shown = dict(definition)
    if "payload_retries" in shown:
        shown["retries"] = {"without_payload": shown["retries"], "with_payload": shown.pop("payload_retries")}
    return shown


duration_text = lru_cache(maxsize=4096)(format_duration)

_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(value: Any) -> str:
    """JSON that is the same for equal values."""
    return _encoder.encode(value)


def fingerprint_of(definition_text: str) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(definition_text.encode("utf-8", "surrogatepass")).hexdigest()


def size_text(size: int) -> str:
    """The shortest exact text of a number of bytes."""
    factor, unit = next(
        (factor, unit) for factor, unit in _UNITS if size % factor == 0 and (size >= factor or factor == 1)
    )
    return f"{size // factor}{unit}"


def action_of(options: Options | None) -> tuple[Action, Json]:
    """The action for the executor, and as it is written; none where the job's author forgot it."""
    if options is None:
        return Action("none", {}), None
    return Action(options.kind, options.options()), options.written()


def _blackout(written: Mapping[str, Any]) -> dict[str, str]:
    made = {}
    for name, value in written.items():
        if isinstance(value, timedelta):
            made[name] = duration_text(value)
        else:
            made[name] = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return made
