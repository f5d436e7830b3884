"""A desk that waits for the runs that are asked for at it."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from typing import Any

from scheduler.core.commands import Accepted, RunRequest
from scheduler.core.errors import SchedulerError
from scheduler.core.model import Run
from scheduler.engine.desk import Desk

Answer = Accepted | SchedulerError


class PatientDesk(Desk):
    """The desk of a daemon answers requests for runs when they are on disk, in another thread."""

    def ask(self, requests: Sequence[RunRequest]) -> list[Answer]:
        answers: queue.SimpleQueue[list[Answer]] = queue.SimpleQueue()
        self.submit(requests, None, lambda served: answers.put(served[0][1]))
        return answers.get(timeout=60)

    def run_now(self, job: str, *, author: str, **how: Any) -> tuple[Run, bool]:
        """The run, and whether it is new; raises what the answer says. `how`: the other fields of the request."""
        (answer,) = self.ask([RunRequest(job, author, **how)])
        if isinstance(answer, SchedulerError):
            raise answer
        with self._store.read() as tx:
            run = tx.runs.get(answer.run)
        assert run is not None
        return run, answer.new
