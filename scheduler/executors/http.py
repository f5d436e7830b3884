"""`http`: one request, in a worker process that has many on their way at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from scheduler.config.secrets import read_secret
from scheduler.core.errors import InvalidInput
from scheduler.core.execution import Launch
from scheduler.core.model import FailReason
from scheduler.core.outcome import Failed, Outcome, Snoozed, Succeeded
from scheduler.core.retry_after import http_date, wait
from scheduler.core.secret import Secret
from scheduler.executors.attempts.environment import base_environment, outward
from scheduler.executors.attempts.values import to_json
from scheduler.executors.context import Context
from scheduler.executors.workers.answers import NO_WORKER_WAIT, as_kept, without_work
from scheduler.executors.workers.pool import Pool
from scheduler.executors.workers.wire import Message
from scheduler.executors.workers.worker import Answer, Place, Task

PER_WORKER = 256
"""Requests that one worker has on their way at most."""
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "DELETE")
_RETRYABLE = (408, 425, 429)
_BAD_VALUE = re.compile(r"[\r\n\0]")


class HttpExecutor:
    """Any 2xx (or what `expect_status` names) is success. 5xx, 408, 425, 429 and broken connections are worth another
    attempt, not sooner than `Retry-After` says; other answers are not."""

    kind: ClassVar[str] = "http"
    own_files: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pool = request_pool(context)

    def start(self, launch: Launch, done: Callable[[Outcome], None]) -> None:
        records = self._context.records
        record = records.of(launch.run.id, launch.attempt)
        try:
            headers, secrets = self._headers(launch)
            if secrets:
                records.hide(record, secrets, {f"headers.{name}": value for name, value in headers.items()})
        except InvalidInput as error:
            record.finish()
            done(Failed(FailReason.SPAWN, str(error)))
            return
        except OSError as error:
            record.finish()
            done(Snoozed(NO_WORKER_WAIT, f"{launch.run.job} could not be started: {error}"))
            return
        message = _message(launch, headers, record.workspace.output)

        def finished(answer: Answer) -> None:
            records.finish_later(record, lambda reported: conclude(answer))

        def conclude(answer: Answer) -> None:
            outcome = without_work(answer, launch.job)
            if outcome is None:
                outcome = outcome_of(answer.message or {}, launch.job.action.options, datetime.now(UTC))
            done(as_kept(outcome, answer, record))

        kill_after = launch.job.kill_after.total_seconds()
        place = Place(self._context.workdir)
        self._pool.submit(Task(launch.run.id, launch.run.node or "", place, message, kill_after, finished))

    def end(self, run: str, why: str) -> None:
        self._pool.end(run, why)

    def tick(self, now: float) -> int:
        """Lets idle workers go and ends those that do not close a connection when asked; the number."""
        return self._pool.tick(now)

    def close(self) -> None:
        self._pool.close()

    def _headers(self, launch: Launch) -> tuple[dict[str, str], dict[str, Secret]]:
        """All headers, and where those among them came from that are secret (by `headers.NAME`)."""
        given: Mapping[str, Any] = launch.job.action.options.get("headers") or {}
        named = {name: Secret(**value) if isinstance(value, Mapping) else str(value) for name, value in given.items()}
        taken = {name.lower() for name in named}
        own = {name: value for name, value in _own_headers(launch.environment).items() if name.lower() not in taken}
        headers, secrets = headers_of(named, self._context.environ)
        return own | headers, secrets


def request_pool(context: Context) -> Pool:
    """Workers that send requests."""
    environment = base_environment(None, "UTC") | outward(context.environ)
    return Pool(HttpExecutor.kind, context.children, environment, per_worker=PER_WORKER, most=context.slots)


def headers_of(
    given: Mapping[str, str | Secret], environ: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Secret]]:
    """Headers as they are sent, and where those among them came from that are secret (by `headers.NAME`). InvalidInput
    for a secret that is not there and for what cannot be sent."""
    headers: dict[str, str] = {}
    secrets: dict[str, Secret] = {}
    for name, value in given.items():
        if isinstance(value, Secret):
            place = f"headers.{name}"
            secrets[place] = value
            value = read_secret(place, value, environ)
        headers[name] = _checked(name, value)
    return headers, secrets


def _own_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """What the run is, as in the environment of a command."""
    words = ("JOB_NAME", "RUN_ID", "ATTEMPT", "TRIGGER", "SCHEDULED_FOR", "TIMEZONE", "FENCE")
    headers = {f"SCHED-{word.replace('_', '-').title()}": environment.get(f"SCHED_{word}", "") for word in words}
    headers["Idempotency-Key"] = environment.get("SCHED_IDEMPOTENCY_KEY", "")
    headers["traceparent"] = environment.get("TRACEPARENT", "")
    return {name: quote(value, safe=" !#$%&'()*+,/:;=?@[]-._~") for name, value in headers.items() if value}


def _checked(name: str, value: str) -> str:
    value = value.strip()
    if _BAD_VALUE.search(value) or any(ord(letter) > 255 for letter in value):
        raise InvalidInput(
            f"headers.{name}: its value cannot be sent in a header",
            hint="it must be one line of Latin-1 characters",
        )
    return value


def _message(launch: Launch, headers: Mapping[str, str], output: str) -> Message:
    options: Mapping[str, Any] = launch.job.action.options
    method = str(options.get("method", "POST"))
    run = launch.run
    has_payload = run.has_payload or run.payload is not None
    payload = None
    if has_payload and method not in _WITHOUT_BODY:
        payload = to_json(run.payload).decode("ascii")
    template = options.get("body")
    return {
        "do": "run",
        "run": run.id,
        "method": method,
        "url": options["url"],
        "fill": None,
        "headers": list(headers.items()),
        "template": template,
        "names": None if template is None else _names(launch),
        "payload": None if template is not None else payload,
        "expect_status": list(options.get("expect_status") or ()),
        # The attempt's own time-out is the daemon's to judge; this one only must not come before it.
        "timeout": launch.job.timeout.total_seconds() + 60.0,
        "output": output,
        "log_limit": launch.job.log_limit,
    }


def _names(launch: Launch) -> dict[str, Any]:
    """What a body template may use."""
    environment = launch.environment
    words = ("ATTEMPT", "TRIGGER", "SCHEDULED_FOR", "TIMEZONE", "IDEMPOTENCY_KEY", "FENCE", "LAST_SUCCESS", "DEADLINE")
    about = {word.lower(): environment.get(f"SCHED_{word}", "") for word in words}
    return {
        "payload": launch.run.payload,
        "checkpoint": launch.run.checkpoint,
        "run": {"id": launch.run.id, "job": launch.run.job, **about},
        "env": dict(launch.job.child.env),
        "secrets": dict(launch.secrets),
    }


def outcome_of(said: Message, options: Mapping[str, Any], now: datetime) -> Outcome:
    """What an answer, or the lack of one, means; `now` only for a Retry-After date where the answer has no Date."""
    if "error" in said:
        reason = FailReason.ERROR if said.get("template") else FailReason.HTTP
        return Failed(reason, said["error"], retryable=not said["final"])
    status = said["status"]
    expected = options.get("expect_status") or ()
    if status in expected or (not expected and 200 <= status < 300):
        return Succeeded(said["result"])
    first = f": {said['first']}" if said["first"] else ""
    url = urlsplit(str(options["url"]))
    where = f"{options.get('method', 'POST')} {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    words = f"{where} answered {status} {said['reason']}".rstrip() + first
    retryable = status >= 500 or status in _RETRYABLE
    not_sooner = wait(said["retry_after"], http_date(said["date"]) or now) if retryable else None
    return Failed(FailReason.HTTP, words, retryable=retryable, not_sooner=not_sooner)
