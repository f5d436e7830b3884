"""Which workers a pool has, which tasks they have, and which tasks wait for one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler.core.ids import new_id
from scheduler.executors.workers.worker import Place, Task, Worker

STARTING = 2 * len(os.sched_getaffinity(0))
"""Processes of one place that start at once. To start one costs as much as hundreds of short tasks: what comes
meanwhile waits for whichever worker is free first."""
PATIENCE = 0.03
"""Seconds, at least, for which all of those that are there must have been at their tasks before a further process is
started: as long as they come back sooner, they are the quickest way through the line. Where starting takes long because
the machine is busy, it is a `_SHARE` of that."""
_SHARE = 0.25
_FIRST_GUESS = 0.1
"""Seconds that a start takes, before one was seen."""
_SMOOTH = 1 / 16
"""The weight of the last hand-out in a line's pace."""
STARTED_WITHIN = 5.0
"""Seconds after which nobody waits any longer for a worker that has not said that it is there."""


@dataclass(slots=True)
class _Line:
    """Tasks that wait for a worker in one place, and how quickly they get one: `pace` is in seconds per task."""

    tasks: deque[Task] = field(default_factory=deque)
    handed_at: float | None = None
    pace: float = 0.0

    def hand_out(self, now: float) -> Task:
        if self.handed_at is not None:
            self.pace += (now - self.handed_at - self.pace) * _SMOOTH
        self.handed_at = now
        return self.tasks.popleft()

    @property
    def lasts(self) -> float:
        """Seconds until it is worked off at this pace."""
        return len(self.tasks) * self.pace


class Roster:
    """At most `per_worker` tasks per worker; tasks wait in the order in which they came, a line per place. Nothing here
    is done to a process or a channel, and only one thread at a time may use it."""

    def __init__(self, kind: str, per_worker: int, clock: Callable[[], float]) -> None:
        self.workers: list[Worker] = []
        self._kind = kind
        self._per_worker = per_worker
        self._clock = clock
        self._by_run: dict[str, Worker] = {}
        self._waiting: dict[Place, _Line] = {}
        self._start_takes = _FIRST_GUESS

    def wait(self, task: Task) -> None:
        task.waits_since = self._clock()
        self._waiting.setdefault(task.place, _Line()).tasks.append(task)

    def places(self) -> list[Place]:
        """Where tasks wait."""
        return list(self._waiting)

    def assign(self, place: Place) -> tuple[Worker, Task] | None:
        """The task that waits longest there, and the worker that has it from now on; that one is new if nobody had room
        and not too many are starting. None: nobody waits, or has to wait on."""
        line = self._waiting.get(place)
        if line is None:
            return None
        worker = self._with_room(place)
        if worker is None:
            if not self._worth_another(place, line):
                return None
            worker = Worker(f"worker-{self._kind}-{new_id()}", place, self._clock(), self._clock())
            self.workers.append(worker)
        task = line.hand_out(self._clock())
        if not line.tasks:
            del self._waiting[place]
        worker.tasks[task.run] = task
        worker.busy_since = self._clock()
        self._by_run[task.run] = worker
        return worker, task

    def heard(self, worker: Worker) -> None:
        """It is there."""
        if worker.ready:
            return
        now = self._clock()
        self._start_takes = (self._start_takes + now - worker.made_at) / 2
        # What it was given could not begin before, and nobody could come back from it.
        worker.ready, worker.busy_since = True, now
        if (line := self._waiting.get(worker.place)) is not None:
            line.handed_at = now

    def find(self, run: str) -> tuple[Worker, Task] | None:
        """Who has the task of this run."""
        worker = self._by_run.get(run)
        task = None if worker is None else worker.tasks.get(run)
        return None if worker is None or task is None else (worker, task)

    def withdraw(self, run: str) -> Task | None:
        """The task of this run, which waits no longer; None if it does not wait."""
        task = next((task for line in self._waiting.values() for task in line.tasks if task.run == run), None)
        if task is not None:
            line = self._waiting[task.place]
            line.tasks.remove(task)
            if not line.tasks:
                del self._waiting[task.place]
        return task

    def withdraw_all(self) -> list[Task]:
        waiting = [task for line in self._waiting.values() for task in line.tasks]
        self._waiting.clear()
        return waiting

    def forget(self, worker: Worker, task: Task) -> None:
        """The worker has this task no longer."""
        worker.tasks.pop(task.run, None)
        if self._by_run.get(task.run) is worker:
            del self._by_run[task.run]
        if not worker.tasks:
            worker.idle_since = self._clock()

    def remove(self, worker: Worker) -> None:
        worker.retiring = True
        if worker in self.workers:
            self.workers.remove(worker)

    def idle(self, since: float = float("inf")) -> list[Worker]:
        """Workers that have had no task since then."""
        return [one for one in self.workers if not one.tasks and not one.retiring and one.idle_since <= since]

    def stuck(self, now: float) -> list[Worker]:
        """Workers that should have ended a task, or themselves, by now."""
        return [one for one in self.workers if one.ended is None and one.overdue(now)]

    def _with_room(self, place: Place) -> Worker | None:
        # The one used last first, so that the others get idle.
        free = [
            one for one in self.workers if len(one.tasks) < self._per_worker and not one.retiring and one.place == place
        ]
        return max(free, key=lambda one: one.idle_since, default=None)

    def _worth_another(self, place: Place, line: _Line) -> bool:
        """Whether a further process would be there before those that are there have worked off the line."""
        now = self._clock()
        there = [one for one in self.workers if not one.retiring and one.place == place]
        if sum(not one.ready and one.made_at > now - STARTED_WITHIN for one in there) >= STARTING:
            return False
        if len(there) < STARTING or line.lasts > self._start_takes:
            return True
        last = max((one.busy_since for one in there if one.ready), default=0.0)
        return now - max(last, line.tasks[0].waits_since) >= max(PATIENCE, self._start_takes * _SHARE)
