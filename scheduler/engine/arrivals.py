"""Events become rows and runs, in one transaction: what every way in has in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from scheduler.core.errors import Unavailable
from scheduler.core.event import Event, NewEvent, Stored
from scheduler.core.execution import Bus
from scheduler.core.model import NewRun
from scheduler.core.ports import Transaction
from scheduler.engine.fan_out import LoadFirst
from scheduler.engine.in_force import InForce, Loaded
from scheduler.engine.subscribers import Subscriber, Told, concerns, event_run, may_concern, told

log = structlog.get_logger("engine")

_Key = tuple[str, str]


@dataclass(slots=True)
class Arrived:
    """`stored` has one entry per event, in their order. `doubtful`: (source, event, job, why) of conditions that could
    not be evaluated and counted as true. `startable`: the events of which a run waits for nothing but a place."""

    stored: list[Stored]
    doubtful: list[tuple[str, str, str, str]] = field(default_factory=list)
    startable: set[_Key] = field(default_factory=set)


def hold_newest(tx: Transaction, in_force: InForce) -> Loaded:
    """The newest configuration, which stays it until the transaction ends. Raises LoadFirst if this node only has to
    load it, Unavailable if it cannot."""
    if tx.generations.hold() <= in_force.current.generation:
        return in_force.current
    if in_force.behind is None:
        raise LoadFirst
    raise Unavailable(
        f"this node stands aside: {in_force.behind}", hint="ask another node; `schedctl nodes` shows them"
    )


def arrive(tx: Transaction, loaded: Loaded, events: Sequence[NewEvent], now: datetime) -> Arrived:
    """Stores those that are new and gives every job that one of them concerns its run; an event that is there makes
    none. `loaded` is what `hold_newest` gave; every source is one of its configuration.

    Of a source that is paused the events are held: `let_go` makes their runs when that is over."""
    sources = loaded.configuration.sources
    paused = {name for name in {event.source for event in events} if sources[name].paused}
    events = [replace(event, held=True) if event.source in paused else event for event in events]
    before = _newest(tx, loaded, [event for event in events if event.occurred_at is not None])
    added = tx.events.add(events)
    new: dict[_Key, NewEvent] = {}
    for event in events:
        key = (event.source, event.id)
        if added[key][1]:
            new.setdefault(key, event)
    arrived = Arrived([])
    made = _runs_of(tx, loaded, _in_order(loaded, ((added[key][0], new[key]) for key in new), before), now, arrived)
    for event in events:
        key = (event.source, event.id)
        # A second one of the same id in this group is a duplicate of the first.
        fresh = new.pop(key, None) is not None
        runs = tuple(made.get(key, ())) if fresh else ()
        arrived.stored.append(Stored(added[key][0], *key, fresh, runs, fresh and key in arrived.startable))
    return arrived


def let_go(tx: Transaction, loaded: Loaded, limit: int, now: datetime) -> Arrived:
    """Makes the runs of events, at most `limit`, that were held and whose source is paused no longer."""
    going = [name for name, source in loaded.configuration.sources.items() if not source.paused]
    held = [replace(event, held=False) for event in tx.events.held(going, limit)] if going else []
    before = _newest(tx, loaded, held)  # while these are no part of it
    gone = tx.events.release([event.seq for event in held])
    events = [event for event in held if event.seq in gone]
    arrived = Arrived([])
    in_order = _in_order(loaded, ((event.seq, event) for event in events), before, waited=True)
    made = _runs_of(tx, loaded, in_order, now, arrived, waited=True)
    for event in events:
        key = (event.source, event.id)
        arrived.stored.append(Stored(event.seq, *key, True, tuple(made.get(key, ()))))
    return arrived


def announce_doubts(bus: Bus, arrived: Arrived) -> None:
    """After the commit: conditions that could not be evaluated."""
    for source, event, job, why in arrived.doubtful:
        log.warning("condition_failed", source=source, event_id=event, job_name=job, why=why)
        bus.publish("condition.failed", source=source, event=event, job=job, why=why)


def announce_runs(bus: Bus, stored: Stored) -> None:
    """After the commit: the runs that an event made."""
    for job, run in stored.runs:
        bus.publish("run.planned", run=run, job=job, cause="event", author="")


def _newest(tx: Transaction, loaded: Loaded, events: Sequence[NewEvent | Event]) -> dict[_Key, tuple[datetime, str]]:
    """Per source and subject what of it was handed on before these, where somebody is told."""
    subjects: dict[str, set[str]] = {}
    for event in events:
        if event.subject and event.source in loaded.subscribers and not event.held:
            subjects.setdefault(event.source, set()).add(event.subject)
    return {
        (source, subject): newest
        for source, wanted in subjects.items()
        for subject, newest in tx.events.newest(source, wanted).items()
    }


def _in_order(
    loaded: Loaded,
    events: Iterable[tuple[int, NewEvent | Event]],
    newest: dict[_Key, tuple[datetime, str]],
    *,
    waited: bool = False,
) -> list[Told]:
    """Those that may concern somebody now, as they occurred; each knows whether a newer one of its subject is ahead of
    it. What has not `waited` and says no time is as new as can be, whatever the provider's clock made of others."""
    found = []
    for seq, event in events:
        if event.held or not may_concern(loaded.subscribers.get(event.source, ()), event):
            continue
        one = told(event, seq)
        stands = newest.get((event.source, event.subject))
        late = stands is not None and one.rank < stands and (waited or event.occurred_at is not None)
        found.append(replace(one, late=late))
    return sorted(found, key=lambda one: one.rank)


def _runs_of(
    tx: Transaction, loaded: Loaded, events: Sequence[Told], now: datetime, arrived: Arrived, *, waited: bool = False
) -> dict[_Key, list[tuple[str, str]]]:
    """Inserts the runs that these events make, by (source, id) of the event; what is doubtful is noted. `waited`: some
    may have come before a job did; it did not subscribe to those."""
    wanted: list[tuple[Told, Subscriber, str]] = []
    for one in events:
        for subscriber in loaded.subscribers[one.event.source]:
            matches, why = concerns(subscriber, one)
            if matches:
                wanted.append((one, subscriber, why))
    if not wanted:
        return {}
    # Nobody removes these jobs now, since nobody replaces the configuration.
    since = {}
    if waited:
        states = tx.jobs.states({subscriber.job.name for _, subscriber, _ in wanted})
        since = {name: state.since for name, state in states.items()}
    runs: list[NewRun] = []
    of: dict[str, _Key] = {}
    for one, subscriber, why in wanted:
        job, event = subscriber.job.name, one.event
        if job in since and event.received_at < since[job]:
            continue
        run = event_run(subscriber, one, now, why)
        runs.append(run)
        of[run.id] = (event.source, event.id)
        if why:
            arrived.doubtful.append((event.source, event.id, job, why))
    new = tx.runs.place(runs)
    made: dict[_Key, list[tuple[str, str]]] = {}
    for run in runs:
        if run.id in new:
            made.setdefault(of[run.id], []).append((run.job, run.id))
            if new[run.id] is None:
                arrived.startable.add(of[run.id])
    return made
