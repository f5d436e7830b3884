"""A span for every attempt, sent by OpenTelemetry where its environment variables say so.

The libraries are an extra (`pip install 'schedulerd[otel]'`) and are loaded only then. Their variables mean what they
mean everywhere (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

import structlog

from scheduler.core.notices import Bus, Notice
from scheduler.core.trace import parent_of, span_of, trace_of

log = structlog.get_logger("daemon")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
LAST = 3.0
"""Seconds that the end of the daemon waits for spans to get out."""
OPEN = 10_000
"""Attempts whose begin is remembered until their end."""

_RESULTS = {"COMPLETED": "success", "CANCELED": "cancellation", "SKIPPED": "skip"}
"""As the semantic conventions of pipelines call it; else `failure`, `timeout` or `error`."""


class Tracer(Protocol):
    """What this needs of OpenTelemetry, with the ids of the next span put beforehand."""

    def record(self, span: Mapping[str, Any]) -> None: ...

    def shutdown(self) -> None: ...


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment names somebody to send spans to."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER", "otlp") == "none":
        return False
    return any(environ.get(name) for name in ENDPOINTS)


def export_spans(bus: Bus, environ: Mapping[str, str], version: str) -> Callable[[], None]:
    """Sends a span for every attempt that ends on this node from now on; the returned function stops that, within LAST.
    Without the extra it is logged how to get it, and nothing is sent."""
    if not wanted(environ):
        return lambda: None
    try:
        from scheduler.observe.otlp import OtlpTracer
    except ImportError as error:
        log.warning(
            "spans_not_exported",
            reason=f"an environment variable asks for spans, but {error.name} is not installed",
            hint="pip install 'schedulerd[otel]', or OTEL_SDK_DISABLED=true",
        )
        return lambda: None
    tracer = OtlpTracer(environ, version)
    end = bus.subscribe(Spans(tracer).hear, "run.started", "run.settled")

    def stop() -> None:
        end()
        # With a receiver that hangs this may take minutes, which the daemon has not.
        flushing = threading.Thread(target=tracer.shutdown, name="spans", daemon=True)
        flushing.start()
        flushing.join(LAST)

    return stop


class Spans:
    """Makes spans of notices, in the thread of whoever publishes them; nothing here waits."""

    def __init__(self, tracer: Tracer, clock: Callable[[], int] = time.time_ns) -> None:
        self._tracer = tracer
        self._clock = clock
        self._begun: dict[tuple[str, int], int] = {}

    def hear(self, notice: Notice) -> None:
        fields = notice.fields
        if notice.name == "run.started":
            self._begun[fields["run"], fields["attempt"]] = self._clock()
            if len(self._begun) > OPEN:
                del self._begun[next(iter(self._begun))]
        elif notice.name == "run.settled" and fields["started_at"] is not None:
            self._tracer.record(self._span(fields))

    def _span(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        run, attempt, status = fields["run"], fields["attempt"], fields["status"]
        trace, reason = fields.get("trace"), fields["reason"]
        begun = self._begun.pop((run, attempt), None) or _nanoseconds(fields["started_at"])
        return {
            "name": f"RUN {fields['job']}",
            "trace": trace_of(run, trace),
            "span": span_of(run, attempt),
            "parent": parent_of(trace),
            "sampled": trace is None or int(trace[53:55], 16) & 1 == 1,
            "start": begun,
            "end": max(begun, _nanoseconds(fields["finished_at"])),
            "failed": None if status in _RESULTS else reason or "failed",
            "attributes": {
                "cicd.pipeline.name": fields["job"],
                "cicd.pipeline.run.id": run,
                "cicd.pipeline.result": _result(status, reason),
                "schedulerd.attempt": attempt,
                # Another attempt follows.
                "schedulerd.final": status != "PENDING",
            },
        }


def _result(status: str, reason: str | None) -> str:
    if status in _RESULTS:
        return _RESULTS[status]
    if reason == "timeout":
        return "timeout"
    return "error" if reason in ("lost", "spawn") else "failure"


def _nanoseconds(instant: datetime) -> int:
    return int(instant.timestamp() * 1e6) * 1000
