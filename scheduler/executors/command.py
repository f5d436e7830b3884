"""`command`: a process of the job's own. A list is executed as it is, a text is given to /bin/sh -c."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from scheduler.core.children import ChildExit, ChildSpec
from scheduler.core.errors import SchedulerError, Unavailable
from scheduler.core.execution import Launch
from scheduler.core.model import FailReason, Json
from scheduler.core.outcome import Failed, Outcome, Snoozed
from scheduler.executors.attempts.anonymous import anonymous_file
from scheduler.executors.attempts.outcomes import of_exit
from scheduler.executors.attempts.prepare import DISK_WAIT, disk_trouble
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.executors.attempts.users import child_user
from scheduler.executors.context import Context

NOBODY_THERE = timedelta(seconds=1)
"""How long a run waits when the owner of child processes does not answer; costs no retry. It happens when that ended
just now: until another one is in its place, nothing is claimed."""


class CommandExecutor:
    """Starts one child per attempt and says what its end means."""

    kind: ClassVar[str] = "command"
    own_files: ClassVar[bool] = False

    def __init__(self, context: Context) -> None:
        self._context = context
        self._live: dict[str, _Attempt] = {}
        self._lock = threading.Lock()

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        def finished(outcome: Outcome) -> None:
            with self._lock:
                self._live.pop(launch.run.id, None)
            done(outcome)

        attempt = _Attempt(launch, self._context.records, finished)
        with self._lock:
            self._live[launch.run.id] = attempt
        try:
            output = attempt.record.workspace.open_output()
        except OSError as error:
            finished(Snoozed(DISK_WAIT, disk_trouble(error)))
            return
        try:
            self._start(attempt, output)
        except Unavailable as error:
            finished(Snoozed(NOBODY_THERE, str(error)))
        except SchedulerError as error:
            finished(Failed(FailReason.SPAWN, attempt.record.masked(str(error)), retryable=False))
        except OSError as error:
            finished(Snoozed(NOBODY_THERE, f"{launch.run.job} could not be started: {error}"))
        finally:
            os.close(output)

    def end(self, run: str, why: str) -> None:
        with self._lock:
            attempt = self._live.get(run)
        if attempt is not None:
            self._context.children.end(run, why, attempt.launch.job.kill_after.total_seconds())

    def tick(self, now: float) -> int:
        """Nothing is ever due here."""
        return 0

    def close(self) -> None:
        """Nothing is held here."""

    def _start(self, attempt: _Attempt, output: int) -> None:
        launch = attempt.launch
        child = launch.job.child
        spec = ChildSpec(
            run=launch.run.id,
            attempt=launch.attempt,
            node=launch.run.node or "",
            argv=_argv(launch.job.action.options["command"]),
            cwd=os.path.join(self._context.workdir, child.workdir or ""),
            env=launch.environment,
            kill_after=launch.job.kill_after.total_seconds(),
            leftovers=launch.job.leftovers,
            user=child_user(child.user),
            limits=child.limits,
        )
        if child.stdin is None:
            self._context.children.start(spec, attempt, output_fd=output)
        else:
            with anonymous_file(child.stdin.encode("utf-8", "surrogateescape")) as file:
                self._context.children.start(spec, attempt, output_fd=output, stdin_fd=file.fileno())


class _Attempt:
    """Hears how the child of one attempt ends."""

    def __init__(self, launch: Launch, records: AttemptRecords, finished: Callable[[Outcome], None]) -> None:
        record = records.of(launch.run.id, launch.attempt)
        self._records = records
        self.launch = launch
        self.record = record
        self._finished = finished

    def refused(self, why: str) -> None:
        self._over(lambda result: Snoozed(NOBODY_THERE, why))

    def failed(self, error: str) -> None:
        self._over(lambda result: Failed(FailReason.SPAWN, self.record.masked(error)))

    def exited(self, ended: ChildExit) -> None:
        note = f"left {ended.left} process{'es' if ended.left > 1 else ''}, ended" if ended.left else ""
        self._over(lambda result: of_exit(ended, self.launch.job, result, self.launch.environment), note)

    def lost(self, error: str) -> None:
        self._over(lambda result: Failed(FailReason.LOST, error))

    def _over(self, outcome: Callable[[Json], Outcome], note: str = "") -> None:
        self._records.finish_later(self.record, lambda result: self._finished(outcome(result)), note)


def _argv(command: str | list[str]) -> tuple[str, ...]:
    return ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
