"""What is allowed but commonly regretted: one warning each, at its place in the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from scheduler.config.channel_advice import about_channels
from scheduler.config.codes import Remark
from scheduler.config.command_advice import about_command
from scheduler.config.here import Here
from scheduler.config.load import Loaded
from scheduler.config.problem import Problem, in_order
from scheduler.config.source_advice import about_scan, about_sources
from scheduler.config.variables import about_variables
from scheduler.config.written import duration_text
from scheduler.core.explain import surprises
from scheduler.core.job import Job, Leftovers
from scheduler.core.lifecycle import wait_before

_GAPS_SEEN = 50


def advise(
    loaded: Loaded,
    now: datetime,
    environ: Mapping[str, str] | None = None,
    *,
    elsewhere: bool = False,
    jobs: Collection[str] | None = None,
) -> list[Problem]:
    """All warnings that nobody acknowledged, by place. Changes of the clock are those of the year after `now`.

    Programs, folders, users, functions and secrets are looked for on this machine, unless the file is for one
    `elsewhere`; nothing is executed. Given `jobs`: of these alone, and nothing of channels and sources."""
    found: list[Problem] = []
    if jobs is None:
        found += about_channels(loaded, environ, elsewhere=elsewhere)
        found += about_sources(loaded, environ, elsewhere=elsewhere)
    bundle = loaded.bundle
    here = None if elsewhere else Here(bundle.source.folder, environ)
    for job in loaded.configuration.jobs.values():
        if jobs is not None and job.name not in jobs:
            continue
        accepted: Any = job.definition.get("acknowledge", ())
        for one in _about(loaded, job, now, here):
            if one.code in accepted:
                continue
            whole = bundle.written_at(job.name, one.path)
            file, (line, column) = bundle.place(whole) or (bundle.source.shown(bundle.source.main), (0, 0))
            found.append(Problem(file, line, column, whole, one.reason, one.hint, job.name, one.code))
    return list(in_order(found))


def _about(loaded: Loaded, job: Job, now: datetime, here: Here | None) -> Iterator[Remark]:
    secrets = loaded.secrets.get(job.name, {})
    for path, secret in secrets.items():
        if secret.file is not None and not secret.file.startswith("/"):
            reason = f"`{secret.file}` is relative to the folder in which the daemon was started"
            yield Remark(path, "relative-secret", reason, "write the whole path")
    if job.schedule is not None:
        for surprise in surprises(job.schedule, now):
            yield Remark(("schedule",), surprise.code, surprise.text, "look at it with: schedctl next " + job.name)
    if job.action.kind == "command":
        yield from about_command(loaded, job)
    yield from about_variables(loaded, job)
    yield from _about_grace(loaded, job, now)
    if job.external and job.schedule is None:
        reason = "it has no schedule, so nothing is expected of it: its failures are heard, its silence is not"
        yield Remark(("external",), "unexpected", reason, "add schedule and timezone: when it runs there")
    yield from about_scan(loaded, job)
    if job.leftovers is Leftovers.KEEP:
        reason = "what a run leaves behind is kept only as long as this daemon lives: it ends when schedulerd does"
        yield Remark(("leftovers",), "kept", reason, "start what must outlive it as a service, or with systemd-run")
    if here is not None:
        yield from here.about(job, secrets)


def _about_grace(loaded: Loaded, job: Job, now: datetime) -> Iterator[Remark]:
    own: Any = loaded.bundle.sections["jobs"][job.name]
    if job.schedule is None or not job.watch.heartbeat:
        return
    if own.get("grace") is not None:
        instants = islice(job.schedule.between(now, now + timedelta(days=400)), _GAPS_SEEN)
        gap = min((later - earlier for earlier, later in pairwise(instants)), default=None)
        if gap is not None and job.watch.grace > gap:
            reason = (
                f"grace {duration_text(job.watch.grace)} is longer than the {duration_text(gap)} between occurrences"
            )
            hint = "a miss is told only after the next one was due; write a shorter grace if it matters"
            yield Remark(("grace",), "grace-long", reason, hint)
    if own.get("timeout") is not None:
        longest = job.timeout * (job.retries.limit + 1)
        for failure in range(1, job.retries.limit + 1):
            longest += wait_before(job.retries, failure) or timedelta()
        if job.watch.grace < longest:
            reason = (
                f"a run may take {duration_text(longest)} with its retries, but is reported as missed after "
                f"{duration_text(job.watch.grace)} (grace)"
            )
            yield Remark(("timeout",), "grace-short", reason, "raise `grace` if such a run is still in time")
