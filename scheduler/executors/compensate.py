"""`compensate`: a scan of a provider's list. The list is read in a worker process, what it holds is the engine's."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from compensators import registry
from scheduler.config.secrets import read_secret
from scheduler.core.compensator import Coverage, Cursor, ListingFailed, Page, Throttled, Window
from scheduler.core.counted import counted
from scheduler.core.errors import SchedulerError
from scheduler.core.execution import Launch, Scanning
from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed, Outcome, Snoozed
from scheduler.core.secret import Secret
from scheduler.executors.attempts.environment import base_environment, outward
from scheduler.executors.attempts.records import AttemptRecord
from scheduler.executors.context import Context
from scheduler.executors.workers.answers import NO_WORKER_WAIT, as_kept, without_work
from scheduler.executors.workers.conversation import Conversation, Over
from scheduler.executors.workers.pool import Pool
from scheduler.executors.workers.scan_messages import opening
from scheduler.executors.workers.worker import Answer, Place

_log = logging.getLogger(__name__)


class CompensateExecutor:
    """A thread per scan stands between its worker, which lists, and the engine, which stores. Secrets of the options
    are read when the run starts, go to that worker alone and are hidden in all that it says."""

    kind: ClassVar[str] = "compensate"
    own_files: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = Pool(self.kind, context.children, base_environment(None, "UTC"), per_worker=1, most=context.slots)

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        record = self._context.records.of(launch.run.id, launch.attempt)
        scanning = self._context.scanning
        try:
            if scanning is None or launch.job.compensate is None:
                raise SchedulerError("this process cannot scan", hint="let schedulerd run it")
            if launch.job.child.user is not None:
                raise SchedulerError("user: is for `command` only", hint="remove it")
            message = self._opening(launch, record, scanning)
        except SchedulerError as error:
            record.finish()
            done(Failed(FailReason.SPAWN, str(error)))
            return
        except OSError as error:
            record.finish()
            done(Snoozed(NO_WORKER_WAIT, f"{launch.run.job} could not be started: {error}"))
            return
        child = launch.job.child
        cwd = os.path.join(self._context.workdir, child.workdir or "")
        place = Place(cwd, launch.environment.get("PYTHONPATH", ""), child.limits)
        kill_after = launch.job.kill_after.total_seconds()
        conversation = Conversation(self._pool, launch.run.node or "", place, message, kill_after)
        # Each waits for its provider most of the time, and its queue says how many there may be.
        work = (launch, record, scanning, conversation, done)
        threading.Thread(target=self._carry_out, args=work, name=f"scan {launch.run.job}", daemon=True).start()

    def end(self, run: str, why: str) -> None:
        self._pool.end(run, why)

    def tick(self, now: float) -> int:
        """Lets idle workers go; the number."""
        return self._pool.tick(now)

    def close(self) -> None:
        self._pool.close()

    def _carry_out(
        self,
        launch: Launch,
        record: AttemptRecord,
        scanning: Scanning,
        conversation: Conversation,
        done: Callable[[Outcome], None],
    ) -> None:
        outcome: Outcome | None
        try:
            outcome = scanning.scan(launch.run, launch.job, _Masked(conversation, record))
        except Over:
            outcome = None
        except Exception as error:
            _log.exception("scan %s failed", launch.run.id)
            outcome = Failed(FailReason.ERROR, f"{type(error).__name__}: {error}")
        answer = conversation.close()
        said = answer.message or {}
        threads = int(said.get("threads") or 0)
        left = f"{counted(answer.left, 'process', 'processes')} and {counted(threads, 'thread')}"
        note = f"left {left}, ended" if answer.left or threads else ""
        ended = _of_end(answer, launch) if outcome is None else outcome
        self._context.records.finish_later(record, lambda reported: done(as_kept(ended, answer, record)), note)

    def _opening(self, launch: Launch, record: AttemptRecord, scanning: Scanning) -> Any:
        spec = launch.job.compensate
        assert spec is not None
        secrets: dict[str, Secret] = {}
        values: dict[str, str] = {}
        options = self._revealed(spec.options, "with", secrets, values)
        if secrets:
            self._context.records.hide(record, secrets, values)
        event = {name: value for name, value in asdict(scanning.source(spec.source).event).items() if value}
        return opening(
            launch.run.id,
            spec.compensator,
            options,
            event,
            plugins=registry.folders_of(self._context.environ.get("SCHEDULER_PLUGINS")),
            environment=outward(self._context.environ) | dict(launch.environment),
            output=record.workspace.output,
        )

    def _revealed(
        self, options: Mapping[str, Any], place: str, secrets: dict[str, Secret], values: dict[str, str]
    ) -> dict[str, Any]:
        """The options with the value of each secret in its place; each is noted by where it stands."""
        revealed: dict[str, Any] = {}
        for name, value in options.items():
            here = f"{place}.{name}"
            if isinstance(value, Secret):
                secrets[here] = value
                values[here] = read_secret(here, value, self._context.environ)
                revealed[name] = values[here]
            else:
                nested = isinstance(value, Mapping)
                revealed[name] = self._revealed(value, here, secrets, values) if nested else value
        return revealed


def _of_end(answer: Answer, launch: Launch) -> Outcome:
    return without_work(answer, launch.job) or Failed(FailReason.ERROR, "its worker ended the listing in the middle")


class _Masked:
    """The compensator in the worker; its errors end up in reports, so they show no secret."""

    kind: ClassVar[str] = ""
    secret_options: ClassVar[Iterable[str]] = ()

    def __init__(self, conversation: Conversation, record: AttemptRecord) -> None:
        self._conversation = conversation
        self._record = record

    def coverage(self) -> Coverage:
        try:
            return self._conversation.coverage()
        except (ListingFailed, Throttled) as error:
            raise self._masked(error) from None

    def pages(self, window: Window, cursor: Cursor | None) -> Iterator[Page]:
        try:
            yield from self._conversation.pages(window, cursor)
        except (ListingFailed, Throttled) as error:
            raise self._masked(error) from None

    def _masked(self, error: ListingFailed | Throttled) -> Exception:
        words = self._record.masked(str(error))
        if isinstance(error, Throttled):
            return Throttled(words, error.retry_after)
        return ListingFailed(words, final=error.final)
