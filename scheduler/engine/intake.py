"""The intake: runs that are asked for by many at once share commits.

One thread takes whatever has come since its last commit, makes all of it in one transaction, and answers when that is
on disk. So the number of runs per second is not that of the disk's commits. A group that fails for a reason of its own
is taken apart, and its members are committed one by one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from scheduler.core.commands import Accepted, Deliver, RunRequest
from scheduler.core.errors import NotFound, SchedulerError, Unavailable
from scheduler.core.execution import Bus, Clock
from scheduler.core.model import Run
from scheduler.core.ports import Store
from scheduler.core.requests import Claim
from scheduler.engine.accept import Answer, accept
from scheduler.engine.fan_out import LoadFirst, check_loaded
from scheduler.engine.in_force import InForce

log = structlog.get_logger("engine")

MOST = 1_000
"""Runs in one transaction; a request for more is one by itself."""
LULL, LINGER = 0.001, 0.015
"""Seconds: in a crowd, a group is closed when nobody has come for so long, or after so long at the latest."""
REMEMBER = 10.0
"""Seconds for which it is remembered how long runs of a job usually are."""


@dataclass(frozen=True, slots=True)
class _Asked:
    requests: Sequence[RunRequest]
    ticket: Any
    deliver: Deliver


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
        hand_over: Callable[[Claim, list[Run] | None], None],
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
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._typical: dict[str, tuple[float, float | None]] = {}

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="intake", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """What was asked before is served."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._asked.put(None)
            thread.join()

    def submit(self, requests: Sequence[RunRequest], ticket: Any, deliver: Deliver) -> None:
        """`deliver` is called once with all tickets that were served together, each with one answer per request."""
        asked = _Asked(requests, ticket, deliver)
        if self._thread is None:
            self._serve_group([asked])
        else:
            self._asked.put(asked)

    def ask(self, requests: Sequence[RunRequest]) -> list[Answer]:
        """The answers, waited for."""
        answers: queue.SimpleQueue[list[Answer]] = queue.SimpleQueue()
        self.submit(requests, None, lambda served: answers.put(served[0][1]))
        return answers.get()

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        crowd = False
        while True:
            group, stopped = self._gather(crowd)
            if group:
                self._serve_group(group)
            if stopped:
                return
            crowd = len(group) > 1

    def _gather(self, crowd: bool) -> tuple[list[_Asked], bool]:
        """What is asked for, at least one; and whether nothing further will be served.

        Somebody who comes alone is served at once. In a crowd it is worth waiting for those who are about to ask: a
        commit for sixty costs hardly more than one for six, and while it is made they are kept from asking."""
        group: list[_Asked] = []
        count, end = 0, float("inf")
        while count < MOST:
            try:
                asked = self._asked.get(timeout=None if not group else LULL if crowd else 0)
            except queue.Empty:
                break
            if asked is None:
                return group, True
            group.append(asked)
            count += len(asked.requests)
            now = time.monotonic()
            end = min(end, now + LINGER)
            if now >= end:
                break
        return group, False

    def _serve_group(self, group: list[_Asked]) -> None:
        answers = self._answers([request for asked in group for request in asked.requests])
        by_door: dict[Deliver, list[tuple[Any, list[Answer]]]] = {}
        begin = 0
        for asked in group:
            end = begin + len(asked.requests)
            by_door.setdefault(asked.deliver, []).append((asked.ticket, answers[begin:end]))
            begin = end
        for deliver, served in by_door.items():
            try:
                deliver(served)
            except Exception:
                log.exception("answers_not_delivered", count=len(served))
        requests = [request for asked in group for request in asked.requests]
        self._announce(pair for pair in zip(requests, answers, strict=True) if not _begun(pair[1]))

    def _announce(self, answered: Iterable[tuple[RunRequest, Answer]]) -> None:
        for request, one in answered:
            if isinstance(one, Accepted) and one.new:
                cause, author = str(request.cause), request.author
                self._bus.publish("run.planned", run=one.run, job=one.job, cause=cause, author=author)

    def _answers(self, requests: list[RunRequest]) -> list[Answer]:
        try:
            return self._commit(requests)
        except SchedulerError as error:
            return [error] * len(requests)
        except Exception as error:
            if len(requests) == 1:
                log.exception("request_failed", job_name=requests[0].job)
                return [SchedulerError(f"{type(error).__name__} inside the daemon", hint="its log has the details")]
            log.warning(
                "group_failed", size=len(requests), error=f"{type(error).__name__}: {error}", retry="one by one"
            )
            return [answer for request in requests for answer in self._answers([request])]

    def _commit(self, requests: list[RunRequest]) -> list[Answer]:
        now = self._store.now()
        try:
            return self._make(requests, now)
        except LoadFirst:
            self._follow(now)
            return self._make(requests, now)

    def _make(self, requests: list[RunRequest], now: datetime) -> list[Answer]:
        claim: Claim | None = None
        claimed: list[Run] = []
        try:
            with self._store.begin() as tx:
                live = tx.nodes.hold(self._node())
                if not check_loaded(tx, self._in_force):
                    raise Unavailable(
                        f"this node stands aside: {self._in_force.behind}",
                        hint="ask another node; `schedctl nodes` shows them",
                    )
                configuration = self._in_force.current.configuration
                usual = partial(self._usual, tx.runs.typical)
                answers = accept(tx, configuration, requests, now, self._no_job, usual)
                # A claim that finds no room would cost as much as all the rest.
                room = any(isinstance(one, Accepted) and one.new and one.wait == 0 for one in answers)
                claim = self._claim() if room and live else None
                if claim is not None:
                    claimed = tx.runs.claim(replace(claim, skip_busy_queues=True), now)
        except BaseException:
            if claim is not None:
                self._hand_over(claim, None)
            raise
        begun = {run.id for run in claimed}
        answers = [
            replace(one, begun=True, ahead=0) if isinstance(one, Accepted) and one.run in begun else one
            for one in answers
        ]
        if claim is not None:
            # That they were planned is told before what follows from it.
            self._announce(pair for pair in zip(requests, answers, strict=True) if _begun(pair[1]))
            self._hand_over(claim, claimed)
        return answers

    def _usual(self, look: Callable[[str], float | None], job: str) -> float | None:
        now = self._clock.monotonic()
        at, length = self._typical.get(job, (float("-inf"), None))
        if now - at > REMEMBER:
            length = look(job)
            self._typical[job] = (now, length)
        return length


def _begun(answer: Answer) -> bool:
    return isinstance(answer, Accepted) and answer.begun
