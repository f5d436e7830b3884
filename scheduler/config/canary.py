"""The canary's job, which is in force beside those of every file and written in none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache

from scheduler.config.models.job import JobModel
from scheduler.config.written import canonical, definition_of, fingerprint_of
from scheduler.core.canary import CANARY, KIND
from scheduler.core.job import Action, CatchUp, Configuration, Job, Overlap, Queue, Watch, lock_key
from scheduler.core.schedule import Schedule

_KEPT = 20
"""Runs: what is of interest is the last ones."""


@cache
def canary() -> Job:
    """Nobody is told of its deadline as of a job's: who watches it is engine.canary."""
    job = Job(
        name=CANARY,
        definition_text="",
        fingerprint="",
        action=Action(KIND, {}),
        description="Goes the way of every run once a minute: its silence means that jobs do not run.",
        schedule=Schedule(("* * * * *",), "UTC", "cron", CANARY),
        overlap=Overlap.SKIP,
        lock=lock_key(CANARY, Overlap.SKIP, None),
        catch_up=CatchUp.NONE,
        timeout=timedelta(seconds=30),
        queue=CANARY,
        keep=_KEPT,
        keep_output=timedelta(hours=1),
        watch=Watch(heartbeat=False),
    )
    model = JobModel(timezone="UTC", heartbeat=False)  # type: ignore[arg-type]
    text = canonical(definition_of(job, model, {}))
    return replace(job, definition_text=text, fingerprint=fingerprint_of(text))


def with_canary(configuration: Configuration) -> Configuration:
    """The same with the canary and its queue; its hash stays that of what was written."""
    jobs = {**configuration.jobs, CANARY: canary()}
    return replace(configuration, jobs=jobs, queues={**configuration.queues, CANARY: Queue(CANARY)})


def without_canary(configuration: Configuration) -> Configuration:
    """What was written."""
    jobs = {name: job for name, job in configuration.jobs.items() if name != CANARY}
    queues = {name: queue for name, queue in configuration.queues.items() if name != CANARY}
    return replace(configuration, jobs=jobs, queues=queues)
