"""Fan-out: which jobs get a run because one of another job ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from scheduler.core.errors import Unavailable
from scheduler.core.job import Action, After, Job, Overlap, lock_key
from scheduler.core.model import Cause, Json, NewRun, Run, Status
from scheduler.core.ports import Transaction
from scheduler.engine.in_force import InForce, Loaded, by_followed
from scheduler.engine.new_run import new_run


class LoadFirst(Unavailable):
    """What is in force is newer than what this node works with, or is about to be: what follows a run must not be read
    from the old one. Nothing was written; after loading it can be tried again."""

    about = "configuration"

    def __init__(self) -> None:
        super().__init__("a newer configuration is in force, and this node has not loaded it yet")


def check_loaded(tx: Transaction, in_force: InForce, loaded: Loaded, newest: int | None = None) -> bool:
    """Whether `loaded`, which was taken from `in_force` before, is the newest generation. Raises LoadFirst if that only
    has to be loaded; False: this node cannot. `newest`: what this transaction has seen as that (None: it is asked).

    What it says of a job holds for the rest of the transaction if the job's row was held (Jobs.hold) before this was
    asked: who replaces a generation changes the rows of the jobs that differ."""
    if (tx.generations.newest_id() if newest is None else newest) <= loaded.generation:
        return True
    if in_force.behind is None or in_force.current is not loaded:
        raise LoadFirst
    return False


def follow_ups(tx: Transaction, current: Loaded, runs: Collection[Run], now: datetime, *, loaded: bool) -> list[NewRun]:
    """A run for every enabled job that follows one of these runs, by the newest generation, which stays it until the
    transaction ends: LoadFirst if that is not `current`. A node that cannot load it (`loaded` False) reads what it
    needs of it from the rows of the jobs."""
    ended = [run for run in runs if run.status.final]
    if not ended or (loaded and not any(run.job in current.followers for run in ended)):
        return []
    # Their own jobs' rows are held by now: to wait for whoever replaces the generation, and waits for those, is no use.
    newest = tx.generations.hold_at_once()
    if newest is None or (loaded and newest > current.generation):
        raise LoadFirst
    followers = current.followers if loaded else _as_written(tx, {run.job for run in ended})
    return [
        _follow_up(job, run, now)
        for run in ended
        for job in followers.get(run.job, ())
        if job.after is not None and job.after.on is run.status
    ]


def _as_written(tx: Transaction, followed: Collection[str]) -> Mapping[str, tuple[Job, ...]]:
    written = tx.jobs.followers(followed)
    return by_followed(_stand_in(name, definition) for name, definition in written.items())


def _stand_in(name: str, definition: Mapping[str, Json]) -> Job:
    """As much of a definition as a run of it needs to be inserted."""
    after = After(str(definition["after"]["job"]), Status(str(definition["after"]["on"]).upper()))
    lock = lock_key(name, Overlap(definition["overlap"]), definition.get("lock"))
    return Job(
        name,
        "{}",
        "",
        Action("", {}),
        after=after,
        lock=lock,
        queue=str(definition["queue"]),
        priority=int(definition["priority"]),
    )


def _follow_up(job: Job, run: Run, now: datetime) -> NewRun:
    payload = {"schema": 1, "run": run.id, "job": run.job, "status": str(run.status), "result": run.result}
    return replace(new_run(job, Cause.AFTER, now, f"after:{run.id}"), payload=payload, has_payload=True)
