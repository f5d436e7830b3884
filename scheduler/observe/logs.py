"""The daemon's log: one line per event on stderr, as text for people or JSON for machines, or in the journal."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO, cast

import structlog

from scheduler.core.notices import Bus, Notice
from scheduler.core.stamp import to_text
from scheduler.observe.journal import Journal, JournalHandler, as_text, goes_to_journal, to_fields

_WARNINGS = frozenset(
    {
        "database.lost",
        "job.failing",
        "job.missed",
        "notification.delayed",
        "notification.failed",
        "queue.saturated",
        "scan.hole",
        "scan.unlisted",
    }
)
_QUIET = frozenset(
    {
        "event.received",
        "notification.announced",
        "run.cancel_asked",
        "run.claimed",
        "run.planned",
        "run.started",
        "scan.read",
    }
)
"""What happens for every event, every page of a list and every run before its end: said only at level debug."""
ATTEMPT_ENDED = "attempt_ended"
"""A run is not settled by an attempt after which a further one waits, until `next_attempt_at`."""
RUN_LOST = "run_lost"
"""An attempt ended with its node, whatever follows: the one line about it."""
_SAID_ALREADY = frozenset(
    {
        "clock.stepped",
        "condition.failed",
        "config.loaded",
        "config.rejected",
        "invariant.broken",
        "job.disabled",
        "node.dead",
        "node.started",
        "run.lost",
        "supervisor.gone",
    }
)
"""Whoever publishes these logs them as well, with more to tell than a notice carries; what is lost is also settled."""


class LogCounts:
    """How many lines were logged, by level; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("info", "warning", "error", "critical"), 0)

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Counts a line on its way, as a processor of structlog."""
        level = str(event.get("level", method))
        with self._lock:
            self._counts[level] = self._counts.get(level, 0) + 1
        return event

    def now(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


def configure_logs(
    style: str, stream: TextIO | None = None, level: int = logging.INFO, counts: LogCounts | None = None
) -> None:
    """`console`, `json`, or `auto`: console on a terminal, fields of the journal where a service manager leads there,
    else JSON. Libraries that use `logging` come out alike, from warnings on. Values are written as they are: whoever
    logs keeps secrets out."""
    plain = stream or sys.stderr
    journal = None
    global _lines
    _lines = _Steady(plain)
    stream = cast(TextIO, _lines)
    if style == "auto" and goes_to_journal(os.environ, plain):
        journal = Journal(stream)
    console = style == "console" or (style == "auto" and stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _dressed,
        *([] if counts is None else [counts]),
    ]
    if journal is not None:
        ending: list[Any] = [structlog.processors.format_exc_info, to_fields]
    elif console:
        ending = [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(),
                # The prettier ones show local variables, and with them secrets.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    else:
        ending = [structlog.processors.format_exc_info, _as_json]
    structlog.configure(
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream) if journal is None else lambda *_: journal,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream) if journal is None else JournalHandler(journal)
    last: list[Any] = [] if journal is None else [as_text]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_no_internals, *ending, *last])
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)


class _Steady:
    """A stream that loses lines rather than raising: a full disk or a reader that has gone must not stop the work that
    the lines are about. Within `together`, a thread's lines are written as one at the end: each write lets other
    threads run, and a crowd of ended runs would wait for them once per line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._here = threading.local()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        if self._kept is not None:
            yield
            return
        self._here.kept = []
        try:
            yield
        finally:
            kept, self._here.kept = self._here.kept, None
            if kept:
                self.write("".join(kept))
                self.flush()

    @property
    def _kept(self) -> list[str] | None:
        return getattr(self._here, "kept", None)

    def write(self, text: str) -> int:
        if self._kept is not None:
            self._kept.append(text)
            return len(text)
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        if self._kept is None:
            with contextlib.suppress(OSError, ValueError):
                self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


_lines: _Steady | None = None
"""As `configure_logs` has chosen them for the whole process."""


def _together() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if _lines is None else _lines.together()


def log_notices(bus: Bus, least: int = logging.INFO) -> Callable[[], None]:
    """Writes the notices on the bus as events of their names, those that weigh at least so much: `run.settled` is
    `run_settled`, ATTEMPT_ENDED while the run itself goes on, or RUN_LOST.

    The returned function ends that."""
    log = structlog.get_logger("notices").bind()
    bus.surround(_together)

    def hear(notice: Notice) -> None:
        level = _level(notice)
        if level < least:
            return
        event, fields = notice.name.replace(".", "_"), _renamed(notice)
        if "lost_with" in fields:
            event = RUN_LOST
        elif fields.get("status") == "pending" and event == "run_settled":
            event = ATTEMPT_ENDED
            del fields["status"]
        log.log(level, event, **fields)

    return bus.subscribe(hear, but=_SAID_ALREADY if least <= logging.DEBUG else _SAID_ALREADY | _QUIET)


def _level(notice: Notice) -> int:
    if notice.name in _QUIET:
        return logging.DEBUG
    fields = notice.fields
    if notice.name in _WARNINGS or str(fields.get("status")) == "FAILED" or fields.get("lost_with") is not None:
        return logging.WARNING
    return logging.INFO


def _renamed(notice: Notice) -> dict[str, Any]:
    """As in metrics and environment `run` and `job` are `run_id` and `job_name`, and a status is in lower case. `event`
    is what a line is called."""
    names = {"run": "run_id", "job": "job_name", "event": "event_id"}
    fields = {names.get(name, name): value for name, value in notice.fields.items() if value is not None}
    return fields | {"status": fields["status"].lower()} if "status" in fields else fields


def _dressed(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """When, how bad and what come first: a line is read by people, too. Instants are texts. One step, because there is
    a line for every run."""
    line = {
        "timestamp": to_text(datetime.now(UTC)),
        "level": _LEVELS.get(method, method),
        "event": event.pop("event", None),
    }
    for name, value in event.items():
        line.setdefault(name, to_text(value) if isinstance(value, datetime) and value.tzinfo is not None else value)
    return line


_LEVELS = {"exception": "error", "warn": "warning"}
_encode = json.JSONEncoder(default=str).encode
"""Made once: structlog's own renderer makes an encoder per line."""


def _as_json(logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    return _encode(event)


def _no_internals(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event.pop("_record", None)
    event.pop("_from_structlog", None)
    return event
