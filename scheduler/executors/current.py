"""`fetch_current`: before a run of an event begins, the present state of what the event is about is asked for.

What was told may be old, and in the wrong order; what is answered now is neither."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol

from scheduler.core.errors import InvalidInput
from scheduler.core.execution import Executor, Launch
from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed, GivenBack, Outcome, Snoozed, Succeeded
from scheduler.core.source import FetchCurrent
from scheduler.executors.attempts.prepare import DISK_WAIT, disk_trouble
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.executors.attempts.values import RESULT_LIMIT
from scheduler.executors.context import Context
from scheduler.executors.http import headers_of, outcome_of, request_pool
from scheduler.executors.workers.answers import as_kept, without_work
from scheduler.executors.workers.wire import Message
from scheduler.executors.workers.worker import Answer, Place, Task

_GONE = (404, 410)
"""There is no such thing any more: that is a state, too."""


class Fetcher:
    """Asks in worker processes, as `http` does. A time-out, a broken connection and 5xx are worth another attempt, and
    other answers are not; 404 and 410 mean that there is nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = request_pool(context)

    def fetch(self, launch: Launch, fetch: FetchCurrent, then: Callable[[Outcome], None]) -> None:
        """`then` is called once, with the state as the result of Succeeded, or with how the attempt ends."""
        records = self._context.records
        record = records.of(launch.run.id, launch.attempt)
        try:
            headers, secrets = headers_of(fetch.headers, self._context.environ)
            if secrets:
                records.hide(record, secrets, {f"headers.{name}": value for name, value in headers.items()})
        except InvalidInput as error:
            then(Failed(FailReason.SPAWN, f"fetch_current: {error}"))
            return
        except OSError as error:
            then(Snoozed(DISK_WAIT, disk_trouble(error)))
            return

        def finished(answer: Answer) -> None:
            outcome = without_work(answer, launch.job) or state_of(answer.message or {}, fetch, datetime.now(UTC))
            # Not in the thread that brought the news: what follows may start a process or write a file.
            records.later(lambda: then(as_kept(outcome, answer, record)))

        kill_after = launch.job.kill_after.total_seconds()
        message = _message(launch, fetch, headers)
        place = Place(self._context.workdir)
        self._pool.submit(Task(launch.run.id, launch.run.node or "", place, message, kill_after, finished))

    def end(self, run: str, why: str) -> None:
        self._pool.end(run, why)

    def tick(self, now: float) -> int:
        return self._pool.tick(now)

    def close(self) -> None:
        self._pool.close()


def _message(launch: Launch, fetch: FetchCurrent, headers: dict[str, str]) -> Message:
    payload = launch.run.payload if isinstance(launch.run.payload, dict) else {}
    return {
        "do": "run",
        "run": launch.run.id,
        "method": "GET",
        "url": fetch.url,
        "fill": {"event": payload.get("event"), "data": payload.get("data")},
        "headers": list(headers.items()),
        "template": None,
        "names": None,
        "payload": None,
        "expect_status": list(_GONE),
        # The attempt's own time-out is the daemon's to judge; this one only must not come before it.
        "timeout": launch.job.timeout.total_seconds() + 60.0,
        # What it answers is in the payload; the output is the handler's.
        "output": os.devnull,
        "log_limit": 0,
    }


def state_of(said: Message, fetch: FetchCurrent, now: datetime) -> Outcome:
    """What the answer says of the present state."""
    if said.get("status") in _GONE:
        return Succeeded(None)
    outcome = outcome_of(said, {"method": "GET", "url": fetch.url}, now)
    if isinstance(outcome, Failed):
        return replace(outcome, error=f"fetch_current: {outcome.error}")
    if said.get("status") != 204 and not said["json"]:
        error = f"fetch_current: the answer is no JSON of at most {RESULT_LIMIT >> 10} KiB; ask for JSON in `headers`"
        return Failed(FailReason.HTTP, error, retryable=False)
    return outcome


class _Inner(Executor, Protocol):
    own_files: ClassVar[bool]

    def tick(self, now: float) -> int: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Asking:
    """An attempt whose state is asked for, and why it was asked to end meanwhile."""

    why: str | None = None


class Informed:
    """An executor whose attempts know the present state where their launch asks for it."""

    kind: ClassVar[str] = ""
    own_files: ClassVar[bool] = False

    def __init__(self, inner: _Inner, fetcher: Fetcher, records: AttemptRecords) -> None:
        self._inner = inner
        self._fetcher = fetcher
        self._records = records
        self._asking: dict[str, _Asking] = {}
        self._lock = threading.Lock()

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        if launch.fetch is None:
            self._inner.start(launch, done)
            return
        asking = _Asking()
        with self._lock:
            self._asking[launch.run.id] = asking
        self._fetcher.fetch(launch, launch.fetch, lambda outcome: self._go_on(launch, asking, outcome, done))

    def end(self, run: str, why: str) -> None:
        with self._lock:
            asking = self._asking.get(run)
            if asking is not None:
                asking.why = why
        if asking is None:
            self._inner.end(run, why)
        else:
            self._fetcher.end(run, why)

    def tick(self, now: float) -> int:
        return self._inner.tick(now) + self._fetcher.tick(now)

    def close(self) -> None:
        self._inner.close()
        self._fetcher.close()

    def _go_on(self, launch: Launch, asking: _Asking, outcome: Outcome, done: Callable[[Outcome], None]) -> None:
        run = launch.run.id
        if isinstance(outcome, Succeeded):
            try:
                launch = self._informed(launch, outcome.result)
            except OSError as error:
                outcome = Snoozed(DISK_WAIT, disk_trouble(error))
        if isinstance(outcome, Succeeded):
            self._inner.start(launch, done)
        why = self._forget(run, asking)
        if not isinstance(outcome, Succeeded):
            self._give_up(launch, outcome, done)
        elif why is not None:
            self._inner.end(run, why)  # Asked for while it was not there to be ended.

    def _forget(self, run: str, asking: _Asking) -> str | None:
        """Why it was asked to end so far."""
        with self._lock:
            if self._asking.get(run) is asking:  # It may be at its next attempt already.
                del self._asking[run]
            return asking.why

    def _informed(self, launch: Launch, current: Any) -> Launch:
        payload = {**launch.run.payload, "current": current}
        if not self._inner.own_files:
            self._records.of(launch.run.id, launch.attempt).workspace.put_payload(payload)
        return replace(launch, run=replace(launch.run, payload=payload), fetch=None)

    def _give_up(self, launch: Launch, outcome: Outcome, done: Callable[[Outcome], None]) -> None:
        record = self._records.of(launch.run.id, launch.attempt)
        if self._inner.own_files:
            record.wrote_nothing()
        if isinstance(outcome, GivenBack):
            outcome = replace(outcome, started=False)  # Nothing of the work itself was begun.
        self._records.finish_later(record, lambda reported: done(outcome))
