"""`call`: a Python function, in a worker process that has one run at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import ClassVar

from scheduler.core.counted import counted
from scheduler.core.execution import Launch
from scheduler.core.model import FailReason, Json
from scheduler.core.outcome import Failed, Outcome, Succeeded
from scheduler.executors.attempts.environment import base_environment
from scheduler.executors.context import Context
from scheduler.executors.workers.answers import as_kept, without_work
from scheduler.executors.workers.pool import Pool
from scheduler.executors.workers.wire import Message
from scheduler.executors.workers.worker import Answer, Place, Task


class CallExecutor:
    """Payload in, result out. Workers are kept for their work directory, PYTHONPATH and limits."""

    kind: ClassVar[str] = "call"
    own_files: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = Pool(self.kind, context.children, base_environment(None, "UTC"), per_worker=1, most=context.slots)

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        record = self._context.records.of(launch.run.id, launch.attempt)
        child = launch.job.child
        if child.user is not None:
            record.finish()
            words = "user: is for `command` only; remove it, or write the call as a command"
            done(Failed(FailReason.SPAWN, words, retryable=False))
            return
        options: Mapping[str, object] = launch.job.action.options
        message: Message = {
            "run": launch.run.id,
            "function": options["function"],
            "with": options.get("with") or {},
            "payload": launch.run.payload,
            "has_payload": launch.run.has_payload or launch.run.payload is not None,
            "checkpoint": launch.run.checkpoint,
            "environment": dict(launch.environment),
            "output": record.workspace.output,
        }

        def finished(answer: Answer) -> None:
            threads = 0 if answer.message is None else answer.message.get("threads", 0)
            left = f"{counted(answer.left, 'process', 'processes')} and {counted(threads, 'thread')}"
            note = f"left {left}, ended" if answer.left or threads else ""
            if answer.message is not None and answer.message.get("wrote") is False:
                record.wrote_nothing()
            self._context.records.finish_later(record, lambda reported: conclude(answer, reported), note)

        def conclude(answer: Answer, reported: Json) -> None:
            outcome = _outcome(answer, launch, reported)
            done(as_kept(outcome, answer, record))

        cwd = os.path.join(self._context.workdir, child.workdir or "")
        place = Place(cwd, launch.environment.get("PYTHONPATH", ""), child.limits)
        kill_after = launch.job.kill_after.total_seconds()
        self._pool.submit(Task(launch.run.id, launch.run.node or "", place, message, kill_after, finished))

    def end(self, run: str, why: str) -> None:
        self._pool.end(run, why)

    def tick(self, now: float) -> int:
        """Lets idle workers go; the number."""
        return self._pool.tick(now)

    def close(self) -> None:
        self._pool.close()


def _outcome(answer: Answer, launch: Launch, reported: object) -> Outcome:
    idle = without_work(answer, launch.job)
    if idle is not None:
        return idle
    said = answer.message or {}
    if "error" in said:
        return Failed(FailReason.ERROR, said["error"], retryable=not said.get("final", False), left=answer.left)
    if "exit" in said:
        code = said["exit"]
        return Failed(FailReason.EXIT, f"called sys.exit({code})", exit_code=code, left=answer.left)
    result = said["result"] if said["result"] is not None else reported
    return Succeeded(result, left=answer.left)
