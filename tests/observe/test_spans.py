from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import structlog

from scheduler.core.model import FailReason
from scheduler.core.notices import Bus, Notice
from scheduler.core.outcome import Failed
from scheduler.core.trace import span_of
from scheduler.observe.spans import Spans, export_spans, wanted
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs

RUN = "01a229c8-56d0-7001-864b-ac23c5563e5d"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
AT = datetime(2026, 3, 2, 8, tzinfo=UTC)


class Kept:
    def __init__(self) -> None:
        self.spans: list[Mapping[str, Any]] = []

    def record(self, span: Mapping[str, Any]) -> None:
        self.spans.append(span)

    def shutdown(self) -> None:
        pass


def settled(**fields: Any) -> Notice:
    known = {"run": RUN, "job": "a", "attempt": 1, "status": "COMPLETED", "reason": None, "trace": None}
    times = {"started_at": AT, "finished_at": AT + timedelta(seconds=2)}
    return Notice("run.settled", {**known, **times, **fields})


def test_an_attempt_is_a_span_in_the_trace_that_its_process_was_told() -> None:
    kept = Kept()
    spans = Spans(kept)
    spans.hear(settled())
    spans.hear(settled(attempt=2, trace=f"00-{TRACE}-{PARENT}-01"))
    own, called = kept.spans
    assert (own["name"], own["trace"], own["parent"]) == ("RUN a", RUN.replace("-", ""), None)
    assert (called["trace"], called["parent"], called["span"]) == (TRACE, PARENT, span_of(RUN, 2))
    assert own["end"] - own["start"] == 2_000_000_000
    assert own["attributes"]["cicd.pipeline.run.id"] == RUN


@pytest.mark.parametrize(
    ("status", "reason", "result", "failed"),
    [
        ("COMPLETED", None, "success", None),
        ("CANCELED", None, "cancellation", None),
        ("FAILED", "exit", "failure", "exit"),
        ("FAILED", "timeout", "timeout", "timeout"),
        ("FAILED", "lost", "error", "lost"),
        ("PENDING", "exit", "failure", "exit"),
    ],
)
def test_what_became_of_it(status: str, reason: str | None, result: str, failed: str | None) -> None:
    kept = Kept()
    Spans(kept).hear(settled(status=status, reason=reason))
    (span,) = kept.spans
    assert (span["attributes"]["cicd.pipeline.result"], span["failed"]) == (result, failed)
    assert span["attributes"]["schedulerd.final"] == (status != "PENDING")


def test_an_attempt_begins_when_it_was_started_not_when_its_run_first_was() -> None:
    kept, now = Kept(), int(AT.timestamp()) * 10**9
    spans = Spans(kept, lambda: now + 10**9)
    spans.hear(Notice("run.started", {"run": RUN, "job": "a", "attempt": 1}))
    spans.hear(settled())
    assert kept.spans[0]["end"] - kept.spans[0]["start"] == 10**9


def test_what_never_started_is_no_span() -> None:
    kept = Kept()
    Spans(kept).hear(settled(status="CANCELED", started_at=None))
    assert kept.spans == []


def test_notices_of_the_engine_have_what_spans_need(store: SqlStore) -> None:
    rig, kept = Rig(store, jobs({"a": {"schedule": "* * * * *", "retries": 1}})), Kept()
    rig.bus.subscribe(Spans(kept).hear)
    rig.tick(minutes=1)
    rig.finish(Failed(FailReason.EXIT, "no", exit_code=1))
    rig.tick(minutes=1)
    rig.finish()
    assert [span["attributes"]["schedulerd.attempt"] for span in kept.spans] == [1, 2]
    assert [span["failed"] for span in kept.spans] == ["exit", None]


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "True"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_environment_asks_for_spans(environ: dict[str, str], asked: bool) -> None:
    assert wanted(environ) == asked


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.delitem(sys.modules, "scheduler.observe.otlp", raising=False)
    bus = Bus()
    with structlog.testing.capture_logs() as logged:
        export_spans(bus, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, "1")()
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("spans_not_exported", "warning")
    assert "schedulerd[otel]" in line["hint"]


def test_who_does_not_ask_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scheduler.observe.otlp", raising=False)
    export_spans(Bus(), {}, "1")()
    assert "scheduler.observe.otlp" not in sys.modules


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """An address that takes spans by HTTP, and what came there."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_spans_arrive(collector: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    otlp = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    address, bodies = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    bus = Bus()
    stop = export_spans(bus, {"OTEL_EXPORTER_OTLP_ENDPOINT": address}, "1.2")
    bus.publish("run.settled", **settled(trace=f"00-{TRACE}-{PARENT}-01", status="FAILED", reason="exit").fields)
    stop()
    request = otlp.ExportTraceServiceRequest.FromString(b"".join(bodies))
    (resource,) = request.resource_spans
    ((span,),) = [scope.spans for scope in resource.scope_spans]
    assert (span.name, span.trace_id.hex(), span.parent_span_id.hex()) == ("RUN a", TRACE, PARENT)
    assert (span.span_id.hex(), span.status.message) == (span_of(RUN, 1), "exit")
    named = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert (named["service.name"], named["service.version"]) == ("schedulerd", "1.2")
