"""Events that are held, and whose runs a new configuration would never make: they may not go without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from scheduler.config.subscriptions import subscription_of
from scheduler.core.event import Event
from scheduler.core.job import Action, Configuration, Job
from scheduler.core.model import NewRun
from scheduler.core.ports import Transaction
from scheduler.engine.subscribers import Subscriber, by_source, concerns, event_run, may_concern, told

log = structlog.get_logger("engine")

TOGETHER = 100
"""Held events that are read at once: their bodies are in memory."""

_Leavers = dict[str, list[tuple[Subscriber, Subscriber | None]]]
"""By source: who gets its events now and may not get them any more, each with what it is then (None: gone)."""


def count_left(tx: Transaction, old: Configuration | None, new: Configuration, now: datetime) -> dict[str, int]:
    """Per job, how many held events would make it no run any more: because it, its source or what it asked for is gone.
    `old` None: this release cannot read it, and asks the jobs' rows."""
    counts: Counter[str] = Counter()
    for _, ends, _ in _left(tx, old, new, now):
        counts.update(run.job for run in ends)
    return dict(counts)


def settle_left(tx: Transaction, old: Configuration | None, new: Configuration, now: datetime) -> None:
    """Gives those events their runs: dead letters (`job_removed`), or, of a job that is only disabled, runs that wait
    until it is not. Events of a source that is gone are held no longer. Before the rows of removed jobs are closed."""
    dead: Counter[str] = Counter()
    for events, ends, waits in _left(tx, old, new, now):
        tx.runs.insert([*ends, *waits])
        tx.runs.give_up([run.id for run in ends], "the event was held, and then nobody was there to get it", now)
        tx.events.release([event.seq for event in events if event.source not in new.sources])
        dead.update(run.job for run in ends)
    for job, count in sorted(dead.items()):
        log.warning("held_events_given_up", job_name=job, dead_letters=count)


def _left(
    tx: Transaction, old: Configuration | None, new: Configuration, now: datetime
) -> Iterator[tuple[list[Event], list[NewRun], list[NewRun]]]:
    """Held events, the oldest first, some at once, with their runs of those who would get them no more, and of those
    who are only disabled. An event that has made its run makes none here."""
    before = _as_written(tx) if old is None else list(old.jobs.values())
    leavers = _leavers(before, new)
    sources = sorted({*leavers, *(set(tx.events.sources()) - set(new.sources))})
    if not sources:
        return
    states = tx.jobs.states({one.job.name for each in leavers.values() for one, _ in each})
    last = 0
    while events := tx.events.held(sources, TOGETHER, after=last):
        last = events[-1].seq
        ends: list[NewRun] = []
        waits: list[NewRun] = []
        for event in events:
            # Who came after the event never asked for it.
            asked = [one for one in leavers.get(event.source, ()) if states[one[0].job.name].since <= event.received_at]
            _divide(event, asked, now, ends, waits)
        made = tx.runs.by_keys({(run.job, run.key) for run in (*ends, *waits) if run.key is not None})
        yield (
            events,
            [run for run in ends if (run.job, run.key) not in made],
            [run for run in waits if (run.job, run.key) not in made],
        )


def _as_written(tx: Transaction) -> list[Job]:
    """Stand-ins for jobs whose configuration cannot be read: what events start them is in their rows."""
    found: list[Job] = []
    for name, definition in tx.jobs.subscribers().items():
        on_event = subscription_of(definition["on_event"])
        if on_event is None:
            log.warning("held_events_without_word", job_name=name, why="what events it gets cannot be read")
        else:
            found.append(Job(name, "{}", "", Action("", {}), on_event=on_event))
    return found


def _leavers(old: Iterable[Job], new: Configuration) -> _Leavers:
    found: _Leavers = {}
    for source, subscribers in by_source(old).items():
        for one in subscribers:
            after = new.jobs.get(one.job.name)
            if after is None or not after.enabled or after.on_event != one.job.on_event:
                found.setdefault(source, []).append((one, _as_enabled(source, after)))
    return found


def _as_enabled(source: str, job: Job | None) -> Subscriber | None:
    """As it would get events of this source if it were enabled."""
    if job is None:
        return None
    found = by_source([replace(job, enabled=True)]).get(source, ())
    return next((replace(one, job=job) for one in found), None)


def _divide(
    event: Event,
    leavers: Sequence[tuple[Subscriber, Subscriber | None]],
    now: datetime,
    ends: list[NewRun],
    waits: list[NewRun],
) -> None:
    if not may_concern([before for before, _ in leavers], event):
        return
    one = told(event, event.seq)
    for before, after in leavers:
        matches, why = concerns(before, one)
        if not matches:
            continue
        if after is None or not concerns(after, one)[0]:
            ends.append(event_run(before, one, now, why))
        elif not after.job.enabled:
            waits.append(event_run(after, one, now, why))
