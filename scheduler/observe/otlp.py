"""Spans handed to the libraries of OpenTelemetry: the one file that imports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags


class OtlpTracer:
    """Sends spans in batches from a thread of its own; when too many wait, further ones are dropped."""

    def __init__(self, environ: Mapping[str, str], version: str) -> None:
        named = environ.get("OTEL_SERVICE_NAME") or "schedulerd"
        self._resource = Resource.create({"service.name": named, "service.version": version})
        self._scope = InstrumentationScope("schedulerd", version)
        self._batches: Any = BatchSpanProcessor(OTLPSpanExporter())

    def record(self, span: Mapping[str, Any]) -> None:
        trace = int(span["trace"], 16)
        flags = TraceFlags(TraceFlags.SAMPLED if span["sampled"] else TraceFlags.DEFAULT)
        parent = span["parent"]
        failed = span["failed"]
        self._batches.on_end(
            ReadableSpan(
                name=span["name"],
                context=SpanContext(trace, int(span["span"], 16), is_remote=False, trace_flags=flags),
                parent=None if parent is None else SpanContext(trace, int(parent, 16), is_remote=True),
                resource=self._resource,
                attributes=span["attributes"],
                kind=SpanKind.SERVER,
                status=Status(StatusCode.OK) if failed is None else Status(StatusCode.ERROR, failed),
                start_time=span["start"],
                end_time=span["end"],
                instrumentation_scope=self._scope,
            )
        )

    def shutdown(self) -> None:
        """Sends what waits."""
        self._batches.shutdown()
