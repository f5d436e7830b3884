"""The daemon's own ping: once a minute, to a dead man's switch outside, that it does its work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import datetime

from scheduler.core.execution import Clock
from scheduler.core.ping import DAEMON, FAIL, MOST_BODY, SUCCESS, Answer, Send, address
from scheduler.engine.targets import Targets

EVERY = 60.0
AGAIN = 10.0
"""Seconds until a ping that was not taken is tried again, TRIES times in all; then the minute is over."""
TRIES = 3


class DaemonPing:
    """`ill` says what keeps this node from doing its work, one sentence each, none if nothing does: then the ping is a
    success, else `/fail` with the sentences as its body. While the node is `leaving` nothing is told: what comes next
    is either a new daemon or the silence that the switch is for."""

    def __init__(
        self,
        url: str,
        ill: Callable[[], list[str]],
        leaving: Callable[[], bool],
        send: Send,
        clock: Clock,
        targets: Targets,
    ) -> None:
        self._url = url
        self._ill = ill
        self._leaving = leaving
        self._send = send
        self._clock = clock
        self._targets = targets
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._busy = False
        self._tries = 0
        self._due = self._next = clock.monotonic()

    def tick(self, now: datetime) -> int:
        """1 if a ping was begun, in a thread of its own."""
        if self._busy and not self._heard(now):
            return 0
        monotonic = self._clock.monotonic()
        if monotonic < self._next or self._leaving():
            return 0
        if monotonic >= self._due:
            self._due, self._tries = monotonic + EVERY, 0
        reasons = self._ill()
        body = "".join(f"{one}\n" for one in reasons).encode()[:MOST_BODY]
        self._busy, self._next = True, self._due
        target = address(self._url, FAIL if reasons else SUCCESS)
        threading.Thread(target=lambda: self._tell(target, body), name="ping", daemon=True).start()
        return 1

    def _tell(self, target: str, body: bytes) -> None:
        try:
            self._answers.put(self._send(target, body))
        except Exception as error:
            self._answers.put(Answer(problem=f"it could not be sent ({type(error).__name__})"))

    def _heard(self, now: datetime) -> bool:
        """Whether the ping under way has been answered."""
        if self._answers.empty():
            return False
        answer = self._answers.get()
        self._busy = False
        self._tries += 1
        if answer.problem is None:
            self._targets.took(DAEMON, now)
            return True
        self._targets.failed(DAEMON, answer.problem, now)
        if self._tries < TRIES:
            self._next = min(self._due, self._clock.monotonic() + AGAIN)
        return True
