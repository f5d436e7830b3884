"""An event once more: a run for every job that it concerns today, however often it was handled."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from scheduler.core.errors import NotFound, Refused
from scheduler.core.inbox import Replayed
from scheduler.core.ports import Transaction
from scheduler.engine.find import no_job
from scheduler.engine.in_force import Loaded
from scheduler.engine.subscribers import concerns, replayed_run, told


def replay(
    tx: Transaction,
    loaded: Loaded,
    source: str,
    event: str,
    jobs: Collection[str] | None,
    author: str,
    reason: str,
    now: datetime,
) -> Replayed:
    """Raises NotFound or Refused before anything is written. A job gets its run also if it came after the event."""
    found = tx.events.get(source, event)
    if found is None:
        raise NotFound(f"no event {event} of {source}", hint="`schedctl events` lists them")
    subscribers = loaded.subscribers.get(source, ())
    for name in jobs or ():
        if name not in loaded.configuration.jobs:
            raise no_job(name, loaded.configuration.jobs)
    asked = [one for one in subscribers if jobs is None or one.job.name in jobs]
    once_more = told(found, found.seq)
    judged = [(one, *concerns(one, once_more)) for one in asked]
    chosen = [(one, why) for one, matches, why in judged if matches]
    if not chosen:
        what = " of those named" if jobs is not None else ""
        raise Refused(
            f"event {event} of {source} ({found.type or 'no type'}) concerns no job{what} today",
            hint="`on_event` of a job says which events it gets: its source, types and where",
        )
    runs = [replayed_run(one, once_more, now, author, "; ".join(filter(None, (reason, why)))) for one, why in chosen]
    tx.runs.insert(runs)
    taken = {one.job.name for one, _ in chosen}
    passed = tuple(one.job.name for one in subscribers if one.job.name not in taken)
    return Replayed(source, event, now, tuple((run.job, run.id) for run in runs), passed)
