"""The daemon's side of one scan's listing: a Compensator whose calls are made in a worker process."""

from __future__ import annotations

import queue
from collections.abc import Iterator

from scheduler.core.compensator import Coverage, Cursor, Page, Window, known_to_inbox
from scheduler.executors.workers.pool import Pool
from scheduler.executors.workers.scan_messages import (
    going_on,
    listing,
    read_coverage,
    read_failure,
    read_page,
    stopping,
    told_known,
)
from scheduler.executors.workers.wire import Message
from scheduler.executors.workers.worker import Answer, Place, Task


class Over(Exception):
    """The worker is gone in the middle of the scan, or was ended: `answer` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("the listing is over")
        self.answer = answer


class Conversation:
    """For one thread, which waits for each answer; the run is ended by `Pool.end`, from any thread, and the wait with
    it. What the compensator raises is raised here; Over if there is no worker to ask any more."""

    def __init__(self, pool: Pool, node: str, place: Place, opening: Message, kill_after: float) -> None:
        self._pool = pool
        self._run: str = opening["run"]
        self._heard: queue.SimpleQueue[Message | Answer] = queue.SimpleQueue()
        self._over: Answer | None = None
        pool.submit(Task(self._run, node, place, opening, kill_after, finish=self._heard.put, heard=self._heard.put))
        self._coverage: Coverage | None = None

    def coverage(self) -> Coverage:
        """What the compensator said when the worker made it."""
        if self._coverage is None:
            self._coverage = read_coverage(self._answer())
        return self._coverage

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        """The next page is asked for when the one before has been taken care of: on the next step."""
        self.coverage()
        order = listing(self._run, window, cursor)
        while True:
            self._pool.say(self._run, order)
            said = self._answer()
            while said["say"] == "known?":
                self._pool.say(self._run, told_known(self._run, known_to_inbox(said["ids"])))
                said = self._answer()
            if said["say"] == "end":
                return
            yield read_page(said)
            order = going_on(self._run)

    def close(self) -> Answer:
        """Says that it is enough, waits until nothing of the run is left, and how it ended. Once is enough."""
        if self._over is None and self._coverage is None:
            # Before its first word there is nobody yet who could hear ours.
            self._next()
        if self._over is None:
            self._pool.say(self._run, stopping(self._run))
        while self._over is None:
            self._next()
        return self._over

    def _answer(self) -> Message:
        """The next message; what it says that went wrong is raised."""
        message = self._next() if self._over is None else None
        if message is not None and "failed" in message:
            raise read_failure(message)
        if message is None or self._over is not None:
            raise Over(self._over or Answer())
        return message

    def _next(self) -> Message | None:
        said = self._heard.get()
        if isinstance(said, Answer):
            self._over = said
            return said.message
        return said
