from __future__ import annotations

import contextlib
import io
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from scheduler.core.model import FailReason
from scheduler.core.notices import Bus
from scheduler.core.outcome import Failed
from scheduler.engine.recovery import recover
from scheduler.observe.logs import LogCounts, configure_logs, log_notices
from scheduler.store.store import SqlStore
from tests.engine.rig import Rig, jobs

pytestmark = pytest.mark.usefixtures("logs_as_they_were")


def lines(stream: io.StringIO) -> list[Any]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    structlog.get_logger("engine").info("run_settled", job_name="a", at=datetime(2026, 3, 2, 8, tzinfo=UTC), of=object)
    structlog.get_logger("engine").debug("not_shown")
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["job_name"]) == ("run_settled", "info", "a")
    assert line["at"] == "2026-03-02T08:00:00Z"
    assert line["timestamp"].endswith("Z")
    assert list(line)[:3] == ["timestamp", "level", "event"]


def test_exceptions_are_told_without_local_variables() -> None:
    for style in ("json", "console"):
        stream = io.StringIO()
        configure_logs(style, stream)
        try:
            password = "hunter2"
            raise ValueError(len(password))
        except ValueError:
            structlog.get_logger("engine").exception("it_broke")
        assert "ValueError: 7" in stream.getvalue()
        assert "hunter2" not in stream.getvalue()


def test_auto_is_json_where_nobody_looks() -> None:
    stream = io.StringIO()
    configure_logs("auto", stream)
    structlog.get_logger("engine").warning("something")
    assert lines(stream)[0]["event"] == "something"


def test_console_is_for_people() -> None:
    stream = io.StringIO()
    configure_logs("console", stream)
    structlog.get_logger("engine").info("started", jobs=5)
    assert "started" in stream.getvalue()
    assert "jobs=5" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_libraries_come_out_alike() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    logging.getLogger("apscheduler").warning("job %s is late", "x")
    logging.getLogger("apscheduler").info("not shown")
    (line,) = lines(stream)
    assert (line["event"], line["level"]) == ("job x is late", "warning")


def test_configuring_twice_logs_once() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    configure_logs("json", stream)
    logging.getLogger("some.library").error("once")
    assert len(lines(stream)) == 1


@pytest.mark.parametrize(
    ("name", "fields", "level"),
    [
        ("run.settled", {"run": "r", "job": "a", "status": "COMPLETED"}, "info"),
        ("run.settled", {"run": "r", "job": "a", "status": "FAILED", "reason": "exit"}, "warning"),
        ("queue.saturated", {"queue": "default"}, "warning"),
        ("job.paused", {"job": "a", "until": None}, "info"),
    ],
)
def test_notices_are_events_of_their_names(name: str, fields: dict[str, Any], level: str) -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    bus = Bus()
    end = log_notices(bus)
    bus.publish(name, **fields)
    (line,) = lines(stream)
    assert (line["event"], line["level"]) == (name.replace(".", "_"), level)
    if "run" in fields:
        assert (line["run_id"], line["job_name"], line["status"]) == ("r", "a", fields["status"].lower())
    assert "until" not in line
    end()
    bus.publish(name, **fields)
    assert len(lines(stream)) == 1


def test_a_notice_of_an_event_says_which() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    failed: list[Exception] = []
    bus = Bus(lambda notice, error: failed.append(error))
    log_notices(bus)
    bus.publish("event.received", source="shop", event="e1", new=True)
    bus.publish("event.replayed", source="shop", event="e1", author="ana")
    (line,) = lines(stream)
    assert (line["event"], line["event_id"], failed) == ("event_replayed", "e1", [])


def test_what_is_said_elsewhere_or_happens_to_every_run_is_not_said() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    bus = Bus()
    log_notices(bus)
    bus.publish("run.claimed", run="r", job="a")
    bus.publish("config.loaded", generation=1)
    assert stream.getvalue() == ""


def test_a_log_that_cannot_be_written_stops_nobody() -> None:
    with open("/dev/full", "w") as stream:
        configure_logs("json", stream)
        structlog.get_logger("engine").error("lost", text="\ud800")
        logging.getLogger("some.library").error("lost, too")
        configure_logs("json", io.StringIO())
        with contextlib.suppress(OSError):
            stream.close()


def test_a_run_that_goes_on_is_not_called_settled() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)
    bus = Bus()
    end = log_notices(bus)
    at = datetime(2026, 3, 2, 8, tzinfo=UTC)
    bus.publish("run.settled", run="r", job="a", attempt=1, status="PENDING", reason="exit", next_attempt_at=at)
    (line,) = lines(stream)
    assert (line["event"], line["level"], "status" in line) == ("attempt_ended", "info", False)
    assert (line["reason"], line["next_attempt_at"]) == ("exit", "2026-03-02T08:00:00Z")
    end()


@pytest.mark.parametrize(("on_lost", "status"), [("retry", "pending"), ("fail", "failed")])
@pytest.mark.parametrize("known", [False, True])
def test_a_lost_run_is_one_line(store: SqlStore, on_lost: str, status: str, known: bool) -> None:
    """Also one of which is known when it was ended with its daemon."""
    rig = Rig(store, jobs({"a": {"schedule": "* * * * *", "on_lost": on_lost}}))
    rig.tick(minutes=1)
    (run,) = rig.runs("a")
    stream = io.StringIO()
    configure_logs("json", stream)
    end = log_notices(rig.bus)
    outcomes = {(run.id, 1): Failed(FailReason.LOST, "its daemon died")} if known else {}
    recover(rig.store, rig.in_force, rig.bus, rig.attempts, [rig.node], outcomes, rig.store.now(), 0.0)
    told = [one for one in lines(stream) if one.get("run_id") == run.id]
    (line,) = (one for one in told if not one["event"].startswith("job_"))
    assert (line["event"], line["level"], line["status"]) == ("run_lost", "warning", status)
    assert (line["job_name"], line["attempt"], line["lost_with"]) == ("a", 1, rig.node)
    assert len(rig.named("run.lost")) == len(rig.named("run.settled")) == 1
    end()


def test_lines_are_counted_by_level() -> None:
    counts = LogCounts()
    configure_logs("json", io.StringIO(), counts=counts)
    log = structlog.get_logger("engine")
    log.info("one")
    log.warning("two")
    try:
        raise ValueError
    except ValueError:
        log.exception("three")
    log.debug("not logged")
    logging.getLogger("library").error("four")
    assert counts.now() == {"info": 1, "warning": 1, "error": 2, "critical": 0}


def test_who_listens_to_some_names_hears_of_no_others() -> None:
    bus, heard, all_heard = Bus(), list[str](), list[str]()
    bus.publish("run.started")
    end = bus.subscribe(lambda notice: heard.append(notice.name), "run.", "job.paused")
    bus.subscribe(lambda notice: all_heard.append(notice.name))
    names = ["run.started", "run.settled", "job.paused", "job.resumed", "event.received"]
    for name in names:
        bus.publish(name)
    end()
    bus.publish("run.started")
    assert heard == names[:3]
    assert all_heard == [*names, "run.started"]


def test_lines_of_one_group_are_written_as_one() -> None:
    writes: list[str] = []

    class Counted(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    configure_logs("json", Counted())
    bus = Bus()
    log_notices(bus)
    with bus.together():
        for run in "abc":
            bus.publish("run.settled", run=run, job="j", status="COMPLETED")
        with bus.together():
            bus.publish("run.settled", run="d", job="j", status="FAILED")
        assert writes == []
    assert [json.loads(line)["run_id"] for line in "".join(writes).splitlines()] == list("abcd")
    assert len(writes) == 1
    with contextlib.suppress(RuntimeError), bus.together():
        bus.publish("run.settled", run="e", job="j", status="COMPLETED")
        raise RuntimeError
    assert '"e"' in writes[1], "what was said before an error is said"
