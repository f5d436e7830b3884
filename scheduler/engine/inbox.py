"""The inbox at work (core.inbox.Inbox): events that come together are stored together, with the runs that they make."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from scheduler.core.errors import NotFound, SchedulerError
from scheduler.core.event import NewEvent, Reject, Stored
from scheduler.core.execution import Bus
from scheduler.core.inbox import Answer, Answered, Judge, Replayed, Reverified
from scheduler.core.look import Look
from scheduler.core.ports import Store, Writing
from scheduler.core.signature import Rejected
from scheduler.engine.arrivals import Arrived, announce_doubts, announce_runs, arrive, hold_newest, let_go
from scheduler.engine.crowd import Crowd
from scheduler.engine.fan_out import LoadFirst
from scheduler.engine.in_force import InForce, Loaded
from scheduler.engine.refused import RefusedRequests
from scheduler.engine.replay import replay

T = TypeVar("T")

TOGETHER = 100
"""Held events whose runs are made in one transaction."""
TURN = 1.0
"""Seconds after which a turn that makes the runs of held events ends; the next goes on."""
TRIES = 3
"""How often a newer configuration is loaded before the sender is told to come again: somebody may be reloading."""
HEAVY = 16_384
"""Bytes of a body for which it counts once more: a thousand bodies of a MiB are no group."""


class EventInbox:
    """`follow` loads the newest generation if it can; `wake` asks the worker to look soon.

    Before `start` and after `stop` events are served at once, in the thread that hands them in."""

    def __init__(
        self, store: Store, in_force: InForce, bus: Bus, follow: Callable[[datetime], None], wake: Callable[[], None]
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._follow = follow
        self._wake = wake
        self._refused = RefusedRequests(store)
        self._crowd: Crowd[NewEvent, Stored] = Crowd(
            "inbox", self._commit, self._tell, lambda event: {"source": event.source, "event_id": event.id}, _weight
        )

    def start(self) -> None:
        self._crowd.start()

    def stop(self) -> None:
        """What was handed in before is served."""
        self._crowd.stop()

    def submit(self, events: Sequence[NewEvent], ticket: Any, deliver: Answered) -> None:
        self._crowd.submit(events, ticket, deliver)

    def refuse(self, reject: Reject) -> None:
        self._refused.add(reject)

    def replay(
        self, source: str, event: str, *, author: str, reason: str = "", jobs: Collection[str] | None = None
    ) -> Replayed:
        done = self._write(lambda tx, loaded: replay(tx, loaded, source, event, jobs, author, reason, tx.now))
        self._wake()
        for job, run in done.runs:
            self._bus.publish("run.planned", run=run, job=job, cause="replay", author=author)
        self._bus.publish("event.replayed", source=source, event=event, runs=len(done.runs), author=author)
        return done

    def keep_refused(self) -> None:
        self._refused.tick()

    def reverify(self, source: str, judge: Judge, *, limit: int = 100, after: int = 0) -> Reverified:
        known = self._in_force.current.configuration.sources.get(source)
        if known is None:
            raise self._no_source(source)
        self._refused.tick()
        # What is older may have come once more, been handled, and be forgotten: it would be handled again.
        since = self._store.now() - known.keep
        with self._store.read() as tx:
            kept = tx.events.rejects(source, limit + 1, after, since)
        verdicts = [(reject, judge(reject)) for reject in kept[:limit]]
        right = [(reject, verdict) for reject, verdict in verdicts if not isinstance(verdict, Rejected)]
        answers = self._crowd.ask([event for _, event in right]) if right else []
        told = [(reject, answer) for (reject, _), answer in zip(right, answers, strict=True)]
        stored = [(reject, answer) for reject, answer in told if isinstance(answer, Stored)]
        if stored:
            with self._store.begin() as tx:
                tx.events.accept([reject.seq for reject, _ in stored], tx.now)
        for _, answer in told:
            if isinstance(answer, SchedulerError):
                raise answer
        refused = [(reject, verdict) for reject, verdict in verdicts if isinstance(verdict, Rejected)]
        return Reverified(tuple(stored), tuple(refused), kept[limit - 1].seq if len(kept) > limit else None)

    def rests(self, look: Look) -> bool:
        """Nothing was refused, and no event is held."""
        return self._refused.empty and not look.held

    def tick(self, now: datetime) -> int:
        """Keeps what was refused, and makes the runs of events whose source is paused no longer (of many, as many as a
        turn has time for); the number of both."""
        done = self._refused.tick()
        with self._store.read() as tx:
            if not tx.events.held(self._going(), 1):
                return done
        end = time.monotonic() + TURN
        while True:
            arrived = self._write(lambda tx, loaded: let_go(tx, loaded, TOGETHER, tx.now))
            self._announce(arrived)
            done += len(arrived.stored)
            if not arrived.stored or time.monotonic() >= end:
                return done

    def _going(self) -> list[str]:
        sources = self._in_force.current.configuration.sources
        return [name for name, source in sources.items() if not source.paused]

    # ------------------------------------------------------------ the group

    def _commit(self, events: list[NewEvent]) -> list[Answer]:
        def store(tx: Writing, loaded: Loaded) -> list[Answer]:
            known = [event for event in events if event.source in loaded.configuration.sources]
            arrived.append(arrive(tx, loaded, known, tx.now))
            stored = iter(arrived[-1].stored)
            return [
                next(stored) if event.source in loaded.configuration.sources else self._no_source(event.source)
                for event in events
            ]

        arrived: list[Arrived] = []
        answers = self._write(store)
        announce_doubts(self._bus, arrived[-1])
        return answers

    def _tell(self, events: list[NewEvent], answers: list[Answer]) -> None:
        for event, answer in zip(events, answers, strict=True):
            if not isinstance(answer, Stored):
                continue
            self._bus.publish(
                "event.received",
                source=event.source,
                event=event.id,
                type=event.type,
                via=str(event.via),
                new=answer.new,
            )
            announce_runs(self._bus, answer)
        if any(isinstance(answer, Stored) and answer.startable for answer in answers):
            self._wake()

    def _announce(self, arrived: Arrived) -> None:
        announce_doubts(self._bus, arrived)
        for one in arrived.stored:
            announce_runs(self._bus, one)
        self._wake()

    # ------------------------------------------------------------ the transaction

    def _write(self, work: Callable[[Writing, Loaded], T]) -> T:
        """`work` in a transaction in which the newest configuration, which it gets, is the one in force."""
        for _ in range(TRIES - 1):
            try:
                return self._try(work)
            except LoadFirst:
                self._follow(self._store.now())
        return self._try(work)

    def _try(self, work: Callable[[Writing, Loaded], T]) -> T:
        with self._store.begin() as tx:
            return work(tx, hold_newest(tx, self._in_force))

    def _no_source(self, name: str) -> NotFound:
        known = self._in_force.current.configuration.sources
        close = difflib.get_close_matches(name, list(known), n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"there are {', '.join(sorted(known)) or 'none'}"
        return NotFound(f"no source {name!r}", hint=hint)


def _weight(event: NewEvent) -> int:
    return 1 + len(event.body) // HEAVY
