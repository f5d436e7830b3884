"""The intake: runs that are asked for by many at once share commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from scheduler.core.commands import Accepted, Deliver, RunRequest
from scheduler.core.errors import NotFound, Unavailable
from scheduler.core.execution import Bus, Clock
from scheduler.core.ports import Store, Transaction
from scheduler.core.requests import Claim, Claimed
from scheduler.engine.accept import Answer, accept
from scheduler.engine.crowd import Crowd
from scheduler.engine.fan_out import LoadFirst, check_loaded
from scheduler.engine.in_force import InForce, Loaded

REMEMBER = 10.0
"""Seconds for which it is remembered how long runs of a job usually are."""


class Intake:
    """`claim` says what this node could run right now (None: nothing), `hand_over` gets each claim back, as in the
    planner; `follow` loads the newest generation if it can; `no_job` is the error for a name that no job has.

    Before `start` and after `stop` requests are served at once, in the thread that makes them."""

    def __init__(
        self,
        store: Store,
        in_force: InForce,
        bus: Bus,
        clock: Clock,
        node: Callable[[], str],
        claim: Callable[[], Claim | None],
        hand_over: Callable[[Claim, Claimed | None], None],
        follow: Callable[[datetime], None],
        no_job: Callable[[str], NotFound],
    ) -> None:
        self._store = store
        self._in_force = in_force
        self._bus = bus
        self._clock = clock
        self._node = node
        self._claim = claim
        self._hand_over = hand_over
        self._follow = follow
        self._no_job = no_job
        self._crowd: Crowd[RunRequest, Accepted] = Crowd(
            "intake", self._commit, self._tell, lambda request: {"job_name": request.job}
        )
        self._typical: dict[str, tuple[float, float | None]] = {}

    def start(self) -> None:
        self._crowd.start()

    def stop(self) -> None:
        """What was asked before is served."""
        self._crowd.stop()

    def submit(self, requests: Sequence[RunRequest], ticket: Any, deliver: Deliver) -> None:
        """`deliver` is called once with all tickets that were served together, each with one answer per request."""
        self._crowd.submit(requests, ticket, deliver)

    def _tell(self, requests: list[RunRequest], answers: list[Answer]) -> None:
        self._announce(pair for pair in zip(requests, answers, strict=True) if not _begun(pair[1]))

    def _announce(self, answered: Iterable[tuple[RunRequest, Answer]]) -> None:
        for request, one in answered:
            if isinstance(one, Accepted) and one.new:
                cause, author = str(request.cause), request.author
                self._bus.publish("run.planned", run=one.run, job=one.job, cause=cause, author=author)
                for run in one.replaced:
                    self._bus.publish("run.cancel_asked", run=run, job=one.job, author=author, reason="replaced")

    def _commit(self, requests: list[RunRequest]) -> list[Answer]:
        try:
            return self._make(requests)
        except LoadFirst:
            self._follow(self._store.now())
            return self._make(requests)

    def _make(self, requests: list[RunRequest]) -> list[Answer]:
        claim: Claim | None = None
        claimed = Claimed()
        try:
            with self._store.begin() as tx:
                live = tx.nodes.hold(self._node())
                loaded = self._in_force.current
                check = partial(self._check, tx, loaded)
                usual = partial(self._usual, tx.runs.typical)
                answers = accept(tx, loaded.configuration, requests, tx.now, self._no_job, check, usual)
                # A claim that finds no room would cost as much as all the rest.
                room = any(isinstance(one, Accepted) and one.new and one.wait == 0 for one in answers)
                claim = self._claim() if room and live else None
                if claim is not None:
                    claimed = tx.runs.claim(replace(claim, skip_busy_queues=True, held=True), tx.now)
        except BaseException:
            if claim is not None:
                self._hand_over(claim, None)
            raise
        begun = {run.id for run in claimed.runs}
        answers = [
            replace(one, begun=True, ahead=0) if isinstance(one, Accepted) and one.run in begun else one
            for one in answers
        ]
        if claim is not None:
            # That they were planned is told before what follows from it.
            self._announce(pair for pair in zip(requests, answers, strict=True) if _begun(pair[1]))
            self._hand_over(claim, claimed)
        return answers

    def _check(self, tx: Transaction, loaded: Loaded) -> None:
        if not check_loaded(tx, self._in_force, loaded):
            raise Unavailable(
                f"this node stands aside: {self._in_force.behind}",
                hint="ask another node; `schedctl nodes` shows them",
            )

    def _usual(self, look: Callable[[str], float | None], job: str) -> float | None:
        now = self._clock.monotonic()
        at, length = self._typical.get(job, (float("-inf"), None))
        if now - at > REMEMBER:
            length = look(job)
            self._typical[job] = (now, length)
        return length


def _begun(answer: Answer) -> bool:
    return isinstance(answer, Accepted) and answer.begun
