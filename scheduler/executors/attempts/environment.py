"""The environment of an attempt: a fixed base, what the job says, and what the run is. Nothing is inherited."""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from functools import cache, lru_cache
from importlib import resources

from scheduler.core.children import BASE_PATH
from scheduler.core.job import Job
from scheduler.core.model import Cause, Run
from scheduler.core.stamp import to_text
from scheduler.core.trace import traceparent
from scheduler.core.zone import UTC_NAMES, zone_of
from scheduler.executors.attempts.workspace import Workspace

LANG = "C.UTF-8"
SYSTEM_ZONES = "/usr/share/zoneinfo"

_OUTWARD = re.compile(r"(?i)(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)")
_OCCURRENCES = (Cause.SCHEDULE, Cause.CATCH_UP, Cause.BACKFILL)


def build_environment(
    run: Run,
    job: Job,
    workspace: Workspace,
    secrets: Mapping[str, str],
    *,
    last_success: datetime | None,
    deadline: datetime | None,
) -> dict[str, str]:
    """Base, then `env`, then `secrets`, then SCHED_* and TRACEPARENT: later ones win. Every SCHED_ variable is
    always there; empty where there is nothing to say. Instants are RFC 3339 with the offset of the job's zone."""
    zone_name = timezone_of(job)
    zone = zone_of(zone_name)
    environment = base_environment(job.child.user, zone_name)
    environment |= job.child.env
    environment |= secrets
    environment |= {
        "SCHED_JOB_NAME": run.job,
        "SCHED_RUN_ID": run.id,
        "SCHED_ATTEMPT": str(run.attempt),
        "SCHED_TRIGGER": str(run.cause),
        "SCHED_SCHEDULED_FOR": _local(run.scheduled_for, zone),
        "SCHED_TIMEZONE": zone_name,
        "SCHED_IDEMPOTENCY_KEY": idempotency_key(run),
        "SCHED_FENCE": str(run.fence),
        "SCHED_PAYLOAD_FILE": workspace.payload if workspace.has_payload else "",
        "SCHED_REPORT_FILE": workspace.report,
        "SCHED_CHECKPOINT_FILE": workspace.checkpoint if workspace.has_checkpoint else "",
        "SCHED_LAST_SUCCESS": _local(last_success, zone),
        "SCHED_DEADLINE": _local(deadline, zone),
        "TRACEPARENT": traceparent(run.id, run.attempt, run.trace),
    }
    return environment


def outward(environ: Mapping[str, str]) -> dict[str, str]:
    """How to get out of this network and whom to trust there: the machine's matter, not a job's."""
    return {name: value for name, value in environ.items() if _OUTWARD.fullmatch(name)}


def base_environment(user: str | None, timezone: str) -> dict[str, str]:
    """What every child gets, whatever surrounds the daemon. TZDIR only on a system that does not know the zone: there
    its C library would take UTC without a word."""
    home = _own_home() if user is None else _home(user)
    base = {"PATH": BASE_PATH, "LANG": LANG, "HOME": home, "TZ": timezone}
    if not _system_knows(SYSTEM_ZONES, timezone):
        base["TZDIR"] = str(resources.files("tzdata").joinpath("zoneinfo"))
    return base


def timezone_of(job: Job) -> str:
    """The zone of the job's schedule; without one the zone that the job names; else UTC."""
    if job.schedule is not None:
        return job.schedule.zone
    return _named_zone(job.definition_text)


def idempotency_key(run: Run) -> str:
    """The same for every attempt of a run, and for every run of one occurrence: `job@instant`, else the run's id."""
    if run.scheduled_for is not None and run.cause in _OCCURRENCES:
        return f"{run.job}@{to_text(run.scheduled_for)}"
    return run.id


def _local(instant: datetime | None, zone: tzinfo) -> str:
    return "" if instant is None else instant.astimezone(zone).isoformat()


@lru_cache(maxsize=1024)
def _named_zone(definition: str) -> str:
    named = json.loads(definition).get("timezone")
    return named if isinstance(named, str) else "UTC"


@cache
def _system_knows(zones: str, timezone: str) -> bool:
    return timezone in UTC_NAMES or os.path.exists(os.path.join(zones, timezone))


@cache
def _own_home() -> str:
    """Ours does not change while we run; to look it up reads a file."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


def _home(user: str) -> str:
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return "/"
