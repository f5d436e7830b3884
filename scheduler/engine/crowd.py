"""What many ask for at once shares commits.

One thread takes whatever has come since its last commit, has all of it done in one transaction, and answers when that
is on disk. So the number of things per second is not that of the disk's commits. A group that fails for a reason of its
own is taken apart, and its members are done one by one.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import structlog

from scheduler.core.errors import SchedulerError
from scheduler.core.value_object import value_object

log = structlog.get_logger("engine")

T = TypeVar("T")
A = TypeVar("A")

Served = list[tuple[Any, list[A | SchedulerError]]]
"""Tickets, each with the answers to what was asked with it."""

MOST = 1_000
"""Things (by their weight) in one transaction; who asks for more at once has one alone."""
LULL, LINGER = 0.001, 0.015
"""Seconds: in a crowd, a group is closed when as many wait as of late, when nobody has come for so long, or after so
long at the latest."""


@value_object
class _Asked(Generic[T, A]):
    items: Sequence[T]
    ticket: Any
    deliver: Callable[[Served[A]], None]


class Crowd(Generic[T, A]):
    """`commit` does things together: one answer for each, in their order; what it raises as a SchedulerError is the
    answer to all. `after` is told of them when they were answered. `about` names a thing to the log, `weigh` says for
    how many of the usual kind it counts.

    Before `start` and after `stop` all is done at once, in the thread that asks."""

    def __init__(
        self,
        name: str,
        commit: Callable[[list[T]], list[A | SchedulerError]],
        after: Callable[[list[T], list[A | SchedulerError]], None],
        about: Callable[[T], dict[str, str]],
        weigh: Callable[[T], int] = lambda item: 1,
    ) -> None:
        self._name = name
        self._commit = commit
        self._after = after
        self._about = about
        self._weigh = weigh
        self._asked: queue.SimpleQueue[_Asked[T, A] | None] = queue.SimpleQueue()
        self._wanted = sys.maxsize
        """How many must wait for the thread to be told ..."""
        self._enough = threading.Event()
        """... that they do."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """What was asked before is served."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._asked.put(None)
            thread.join()

    def submit(self, items: Sequence[T], ticket: Any, deliver: Callable[[Served[A]], None]) -> None:
        """`deliver` is called once with all tickets that were served together, each with one answer per thing."""
        asked = _Asked(items, ticket, deliver)
        if self._thread is None:
            self._serve_group([asked])
        else:
            self._asked.put(asked)
            if self._asked.qsize() >= self._wanted:
                self._enough.set()

    def ask(self, items: Sequence[T]) -> list[A | SchedulerError]:
        """The answers, waited for."""
        answers: queue.SimpleQueue[list[A | SchedulerError]] = queue.SimpleQueue()
        self.submit(items, None, lambda served: answers.put(served[0][1]))
        return answers.get()

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        usual = 0
        while True:
            group, stopped = self._gather(usual)
            if group:
                self._serve_group(group)
            if stopped:
                return
            usual = max(len(group), usual // 2)

    def _gather(self, usual: int) -> tuple[list[_Asked[T, A]], bool]:
        """What is asked for, at least one; and whether nothing further will be served. `usual`: how many came together
        of late.

        Somebody who comes alone is served at once. In a crowd it is worth waiting for those who are about to ask: a
        commit for sixty costs hardly more than one for six, and while it is made they are kept from asking."""
        asked = self._asked.get()
        if usual > 1:
            self._wait_for(usual - 1)
        group: list[_Asked[T, A]] = []
        count = 0
        while asked is not None:
            group.append(asked)
            count += self._weight(asked)
            if count >= MOST:
                return group, False
            try:
                asked = self._asked.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _wait_for(self, more: int) -> None:
        """Until so many wait, or nobody has come for LULL, or for LINGER."""
        end = time.monotonic() + LINGER
        before = -1
        self._enough.clear()
        self._wanted = more
        # Not woken for each who comes: that costs as much as to serve.
        while before < (here := self._asked.qsize()) < more and time.monotonic() < end:
            before = here
            self._enough.wait(LULL)
        self._wanted = sys.maxsize

    def _weight(self, asked: _Asked[T, A]) -> int:
        return sum(map(self._weigh, asked.items))

    def _serve_group(self, group: list[_Asked[T, A]]) -> None:
        items = [item for asked in group for item in asked.items]
        answers = self._answers(items)
        by_door: dict[Callable[[Served[A]], None], Served[A]] = {}
        begin = 0
        for asked in group:
            end = begin + len(asked.items)
            by_door.setdefault(asked.deliver, []).append((asked.ticket, answers[begin:end]))
            begin = end
        for deliver, served in by_door.items():
            try:
                deliver(served)
            except Exception:
                log.exception("answers_not_delivered", count=len(served))
        try:
            self._after(items, answers)
        except Exception:  # They are answered; who comes next must be, too.
            log.exception("answers_not_announced", count=len(answers))

    def _answers(self, items: list[T]) -> list[A | SchedulerError]:
        try:
            return self._commit(items)
        except SchedulerError as error:
            return [error] * len(items)
        except Exception as error:
            if len(items) == 1:
                log.exception("request_failed", **self._about(items[0]))
                return [SchedulerError(f"{type(error).__name__} inside the daemon", hint="its log has the details")]
            log.warning("group_failed", size=len(items), error=f"{type(error).__name__}: {error}", retry="one by one")
            return [answer for item in items for answer in self._answers([item])]
