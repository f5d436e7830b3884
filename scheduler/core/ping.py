"""Pings to a dead man's switch outside, in the words of healthchecks.io: pure.

A URL stands for a check; `/start`, `/fail`, `/log` or an exit code behind it say what happened, nothing behind it is a
success, `rid` says which run is meant, and the body is a text for people. (healthchecks' documentation of its
"Pinging API", and what its self-hosted release does.)
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import quote, urlsplit, urlunsplit

from scheduler.core.durations import format_duration
from scheduler.core.ids import short
from scheduler.core.model import Output, Run, Status
from scheduler.core.queries import RunDetail
from scheduler.core.value_object import value_object

START, SUCCESS, FAIL, RETRY, CANCELED = "start", "success", "fail", "retry", "canceled"
"""What a ping may say, besides the exit code of a run that failed."""
_PATHS = {SUCCESS: "", RETRY: "/log", CANCELED: "/log"}
"""What stands for these behind the URL; `/log` changes no state."""
MOST_BODY = 10_000
"""Bytes of a body; healthchecks keeps so many unless its answer says otherwise."""
TIMEOUT = 10.0
"""Seconds for which nothing may come, before a ping counts as failed."""
DAEMON = "daemon"
"""The target of the daemon's own ping, as metrics and messages call it."""


@value_object
class NewPing:
    """One to send. `node`: who may send it before others may, as long as it lives. Its URL is a secret, and is looked
    up when it is sent."""

    job: str
    run: str
    attempt: int
    signal: str
    node: str
    created_at: datetime


@value_object
class Ping:
    """One that waits. `not_before`: then it is sent, or tried again."""

    seq: int
    job: str
    run: str
    attempt: int
    signal: str
    created_at: datetime
    not_before: datetime
    tries: int = 0


@value_object
class Answer:
    """What became of a ping that was sent. `problem` None: it was taken. `limit`: so many bytes of a body are kept
    there; `not_sooner`: so long it asks to be left alone. The URL occurs in none of it."""

    problem: str | None = None
    limit: int | None = None
    not_sooner: timedelta | None = None


@value_object
class Standing:
    """`accepted_at`: when a ping was last taken; `failing_since`, `reason`: if none has been since, although
    some wait to be told."""

    accepted_at: datetime | None = None
    failures: int = 0
    failing_since: datetime | None = None
    reason: str = ""


class Send(Protocol):
    def __call__(self, url: str, body: bytes) -> Answer:
        """Sends one ping, within some TIMEOUT; raises nothing."""
        ...


def signal_of(run: Run, attempt_outcome: str | None) -> str | None:
    """What is told of a run as an attempt left it; None: nothing. A further attempt and a cancelation are told without
    changing the check's state: neither is a success, and neither is the end that counts."""
    match run.status:
        case Status.COMPLETED:
            return SUCCESS
        case Status.FAILED:
            code = run.exit_code
            return str(code) if code is not None and 1 <= code <= 255 else FAIL
        case Status.CANCELED:
            return CANCELED
        case Status.PENDING:
            return RETRY if attempt_outcome not in (None, "snoozed") else None
    return None


def address(url: str, signal: str, run: str | None = None) -> str:
    """Where that is said: `url` with the word behind its path, and the run's id as `rid`."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/") + _PATHS.get(signal, f"/{signal}")
    pairs = [parts.query] if parts.query else []
    if run is not None:
        pairs.append(f"rid={quote(run, safe='')}")
    return urlunsplit((parts.scheme, parts.netloc, path, "&".join(pairs), ""))


def body_of(ping: Ping, run: RunDetail | None, output: Output | None, limit: int = MOST_BODY) -> bytes:
    """The last lines that the attempt printed, and one of ours that says what became of it: at most `limit` bytes of
    UTF-8, in whole lines as far as that goes. `run` None: it has been forgotten since."""
    ours = f"[schedulerd] {_sentence(ping, run)}\n".encode()[:limit]
    return _last_lines(output, limit - len(ours)) + ours


def _last_lines(output: Output | None, room: int) -> bytes:
    if output is None or room <= 0:
        return b""
    kept = output.tail or output.head if output.omitted else output.head + output.tail
    text = kept.decode("utf-8", "replace").replace("\0", "").encode()
    if text and not text.endswith(b"\n"):
        text += b"\n"
    if len(text) <= room:
        return text
    cut = text[-room:]
    _, _, rest = cut.partition(b"\n")
    return rest or cut.decode("utf-8", "ignore").encode()


def _sentence(ping: Ping, run: RunDetail | None) -> str:
    who = f"{ping.job} ({short(ping.run)})"
    what = {
        SUCCESS: "completed",
        CANCELED: "was canceled",
        RETRY: f"failed at attempt {ping.attempt}",
    }.get(ping.signal, "failed")
    attempt = None if run is None else next((one for one in run.attempts if one.number == ping.attempt), None)
    if run is None or attempt is None:
        return f"{who} {what}"
    took = "" if attempt.took is None else f" after {_rounded(attempt.took)}"
    at = "" if attempt.finished_at is None else f" at {attempt.finished_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    why = run.run.reason if ping.signal == CANCELED else attempt.error
    more = "; a further one follows" if ping.signal == RETRY else ""
    return f"{who} {what}{took}{at}" + (f": {why}" if why else "") + more


def _rounded(seconds: float) -> str:
    return format_duration(timedelta(seconds=round(seconds, 1 if seconds >= 1 else 3)))
