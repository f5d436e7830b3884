from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from scheduler.core.model import Cause, FailReason
from scheduler.core.outcome import Canceled, Failed, Succeeded
from scheduler.executors.attempts.records import AttemptRecords
from scheduler.supervisor.owner import Owner
from tests.executors.harness import CREATED, Bench, Going, alive, living_in, until
from tests.executors.server import Answers, Server, as_json, reply


@pytest.fixture(scope="module")
def bench(children: Owner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all of these tests: starting a worker takes longer than what most of them do with it."""
    made = Bench(children, tmp_path_factory.mktemp("http"), {})
    yield made
    made.close()


def start(
    bench: Bench, url: str, *, run: dict[str, Any] | None = None, job: dict[str, Any] | None = None, **options: Any
) -> Going:
    return bench.start("http", {"url": url, **options}, run=run, **(job or {}))


def test_what_is_sent(bench: Bench, server: Server) -> None:
    bench.environ["API_TOKEN"] = "tok-very-secret"
    going = start(
        bench,
        f"{server.url}/orders?q=1",
        method="PUT",
        headers={"X-Team": "ops", "Authorization": {"env": "API_TOKEN", "prefix": "Bearer "}},
        run={"payload": {"a": [1, "ü"]}, "cause": Cause.SCHEDULE, "scheduled_for": CREATED, "attempt": 3},
    )
    going.succeeded()
    [asked] = server.asked
    assert (asked.method, asked.path) == ("PUT", "/orders?q=1")
    assert json.loads(asked.body) == {"a": [1, "ü"]}
    sent = asked.headers
    assert sent["content-type"] == "application/json"
    assert sent["authorization"] == "Bearer tok-very-secret"
    assert sent["x-team"] == "ops"
    assert sent["idempotency-key"] == "example@2026-03-01T12:00:00Z"
    assert sent["sched-job-name"] == "example"
    assert sent["sched-run-id"] == going.launch.run.id
    assert sent["sched-attempt"] == "3"
    assert sent["sched-trigger"] == "schedule"
    assert sent["sched-scheduled-for"] == "2026-03-01T20:00:00+08:00"
    assert sent["sched-fence"] == "7"
    assert sent["traceparent"] == going.launch.environment["TRACEPARENT"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_methods_without_a_body_send_none(bench: Bench, server: Server, method: str) -> None:
    start(bench, server.url, method=method, run={"payload": 1}).succeeded()
    assert server.asked[0].method == method
    assert server.asked[0].body == b""


def test_a_run_without_payload_sends_no_body(bench: Bench, server: Server) -> None:
    start(bench, server.url).succeeded()
    assert server.asked[0].body == b""
    assert "content-type" not in server.asked[0].headers


def test_body_is_a_template(bench: Bench, server: Server) -> None:
    template = '{"order": {{ payload.data.id | tojson }}, "run": "{{ run.id }}", "team": {{ env.TEAM | tojson }}}'
    payload = {"data": {"id": 'a "quoted" ü'}}
    going = start(bench, server.url, body=template, run={"payload": payload}, job={"env": {"TEAM": "ops"}})
    going.succeeded()
    assert json.loads(server.asked[0].body) == {"order": 'a "quoted" ü', "run": going.launch.run.id, "team": "ops"}
    assert server.asked[0].headers["content-type"] == "application/json"
    start(bench, server.url, body="just {{ 1 + 1 }}").succeeded()
    assert server.asked[1].body == b"just 2"
    assert server.asked[1].headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ payload.missing }}", "has no attribute 'missing'"),
        ("{{ nothing }}", "'nothing' is undefined"),
        ("one\n{{ payload", "line 2"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
    ],
)
def test_template_errors_send_nothing_and_are_not_tried_again(
    bench: Bench, server: Server, template: str, words: str
) -> None:
    failed = start(bench, server.url, body=template, run={"payload": {}}).failed()
    assert (failed.reason, failed.retryable) == (FailReason.ERROR, False)
    assert failed.error.startswith("body: ")
    assert words in failed.error
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (400, False),
        (401, False),
        (404, False),
        (408, True),
        (409, False),
        (422, False),
        (429, True),
        (500, True),
        (503, True),
    ],
)
def test_which_answers_are_worth_another_attempt(bench: Bench, server: Server, status: int, retryable: bool) -> None:
    server.answers["/"] = Answers(status, b"first line\nsecond line", {"Content-Type": "text/plain"})
    failed = start(bench, f"{server.url}/?secret=1").failed()
    assert (failed.reason, failed.retryable, failed.not_sooner) == (FailReason.HTTP, retryable, None)
    assert f"POST {server.url}/ answered {status}" in failed.error
    assert failed.error.endswith(": first line")
    assert "secret" not in failed.error


@pytest.mark.parametrize(("status", "expected", "good"), [(404, [404], True), (200, [204], False), (302, [302], True)])
def test_expected_statuses(bench: Bench, server: Server, status: int, expected: list[int], good: bool) -> None:
    server.answers["/"] = Answers(status, b"", {"Location": "http://elsewhere.invalid/"})
    assert isinstance(start(bench, server.url, expect_status=expected).outcome(), Succeeded) is good


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7), (format_datetime(CREATED + timedelta(minutes=2), usegmt=True), 120), ("soon", None)],
)
def test_retry_after_is_a_floor(bench: Bench, server: Server, value: str, seconds: int | None) -> None:
    def busy(handler: Any) -> None:
        handler.date_time_string = lambda: format_datetime(CREATED, usegmt=True)
        reply(handler, Answers(429, b"", {"Retry-After": value}))

    server.handlers["/"] = busy
    failed = start(bench, f"{server.url}/").failed()
    assert failed.not_sooner == (None if seconds is None else timedelta(seconds=seconds))


def test_small_json_is_the_result(bench: Bench, server: Server) -> None:
    server.answers["/json"] = Answers(body=as_json({"id": 7}), headers={"Content-Type": "application/problem+json"})
    assert start(bench, f"{server.url}/json").succeeded().result == {"id": 7}
    for body, kind in (
        (b"{broken", "application/json"),
        (b"{}", "text/plain"),
        (as_json("x" * 300_000), "application/json"),
    ):
        server.answers["/other"] = Answers(body=body, headers={"Content-Type": kind})
        assert start(bench, f"{server.url}/other").succeeded().result is None


def test_the_answer_is_the_output_without_secrets(bench: Bench, server: Server) -> None:
    bench.environ["API_TOKEN"] = "tok-very-secret"
    body = b'you sent "tok-very-secret"'
    server.answers["/x"] = Answers(201, body, {"Content-Type": "text/plain", "Set-Cookie": "session=abc123"})
    url = server.url.replace("://", "://user:password@") + "/x?key=abc"
    going = start(bench, url, headers={"X-Key": {"env": "API_TOKEN"}})
    going.succeeded()
    output = going.output()
    lines = output.splitlines()
    assert lines[:2] == [f"POST {server.url}/x", "HTTP/1.1 201 Created"]
    assert "set-cookie: ***" in lines
    assert lines[-1] == 'you sent "***"'
    for hidden in ("tok-very-secret", "abc123", "password", "key=abc"):
        assert hidden not in output


def test_a_later_daemon_hides_the_secrets_of_headers(bench: Bench, server: Server) -> None:
    bench.environ["API_TOKEN"] = "tok-very-secret"
    server.answers["/x"] = Answers(200, b"you sent tok-very-secret", {"Content-Type": "text/plain"})
    going = start(bench, f"{server.url}/x", headers={"X-Key": {"env": "API_TOKEN", "prefix": "Bearer "}})
    going.succeeded()
    key = going.launch.run.id, 1
    [output] = AttemptRecords(bench.state, bench.environ).outputs([key])
    assert output.head.endswith(b"you sent ***\n")
    [withheld] = AttemptRecords(bench.state, {}).outputs([key])
    assert b"tok-very-secret" not in withheld.head
    assert b"API_TOKEN" in withheld.head


def test_output_is_limited_and_an_endless_answer_is_left(bench: Bench, server: Server) -> None:
    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65_536)
        except OSError:
            server.gone.set()

    server.handlers["/"] = endless
    going = start(bench, f"{server.url}/", job={"log_limit": 10_000})
    assert going.succeeded().result is None
    assert server.gone.wait(20)
    assert len(going.output()) < 12_000
    assert "the rest of the answer was not read" in going.output()


def test_connection_refused_is_worth_another_attempt(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    failed = start(bench, f"http://127.0.0.1:{port}/x").failed()
    assert (failed.reason, failed.retryable) == (FailReason.HTTP, True)
    assert f"POST http://127.0.0.1:{port}/x: cannot connect" in failed.error


def test_a_connection_that_breaks_is_worth_another_attempt(bench: Bench, server: Server) -> None:
    def breaks(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    server.handlers["/"] = breaks
    failed = start(bench, f"{server.url}/").failed()
    assert (failed.reason, failed.retryable) == (FailReason.HTTP, True)
    assert "the connection broke" in failed.error


@pytest.mark.parametrize("url", ["http://[broken/", "http://no-such-host.invalid/", "https://127.0.0.1:1/"])
def test_addresses_that_lead_nowhere(bench: Bench, url: str) -> None:
    assert start(bench, url).failed().reason is FailReason.HTTP


def test_cancel_closes_the_connection(bench: Bench, server: Server) -> None:
    server.handlers["/"] = server.slow
    going = start(bench, f"{server.url}/")
    going.until_output("begun")
    going.end("cancel")
    assert going.outcome() == Canceled("cancel")
    assert server.gone.wait(20)
    assert len(living_in(bench.state)) == 1, "the worker goes on"


def test_same_server_redirects_keep_method_and_body(bench: Bench, server: Server) -> None:
    server.answers["/old"] = Answers(307, b"", {"Location": "/new"})
    start(bench, f"{server.url}/old", run={"payload": {"a": 1}}).succeeded()
    assert [(one.method, one.path, one.body) for one in server.asked] == [
        ("POST", "/old", b'{"a":1}'),
        ("POST", "/new", b'{"a":1}'),
    ]
    server.answers["/get"] = Answers(302, b"", {"Location": "/got"})
    start(bench, f"{server.url}/get", method="GET").succeeded()
    assert server.asked[-1].path == "/got"


@pytest.mark.parametrize(
    ("status", "location", "words"),
    [
        (307, "http://localhost:1/x", "points to another server"),
        (302, "/new", "would turn POST into GET"),
        (307, "/loop", "more than 5 times"),
        (307, None, "without a usable Location"),
    ],
)
def test_other_redirects_are_refused(
    bench: Bench, server: Server, status: int, location: str | None, words: str
) -> None:
    server.answers["/loop"] = Answers(status, b"", {} if location is None else {"Location": location})
    failed = start(bench, f"{server.url}/loop").failed()
    assert words in failed.error
    assert not failed.retryable
    assert {one.path for one in server.asked} == {"/loop"}


def test_cookies_do_not_travel_from_run_to_run(bench: Bench, server: Server) -> None:
    server.answers["/"] = Answers(headers={"Set-Cookie": "session=abc"})
    start(bench, f"{server.url}/").succeeded()
    start(bench, f"{server.url}/").succeeded()
    assert all("cookie" not in one.headers for one in server.asked)


@pytest.mark.parametrize("value", ["two\nlines", "snow ☃ man"])
def test_secret_that_fits_no_header_is_named_not_shown(bench: Bench, server: Server, value: str) -> None:
    bench.environ["API_TOKEN"] = value
    failed = start(bench, server.url, headers={"X-Key": {"env": "API_TOKEN"}}).failed()
    assert failed.reason is FailReason.SPAWN
    assert "headers.X-Key" in failed.error
    assert value not in failed.error


def test_missing_secret_of_a_header_is_named(bench: Bench, server: Server) -> None:
    failed = start(bench, server.url, headers={"X-Key": {"env": "NOT_THERE"}}).failed()
    assert "headers.X-Key" in failed.error
    assert "NOT_THERE" in failed.error


def test_a_hundred_at_once_in_one_worker(bench: Bench, server: Server) -> None:
    server.handlers["/"] = server.gather
    many = [start(bench, f"{server.url}/") for _ in range(100)]
    until(lambda: server.waiting == 100, "all requests to be on their way")
    assert len(living_in(bench.state)) == 1
    server.release.set()
    assert all(isinstance(one.outcome(), Succeeded) for one in many)


def test_a_worker_that_dies_takes_its_requests_along(bench: Bench, server: Server) -> None:
    server.handlers["/"] = server.slow
    many = [start(bench, f"{server.url}/") for _ in range(3)]
    until(lambda: server.waiting == 3, "all requests to be on their way")
    [worker] = living_in(bench.state)
    os.kill(worker, signal.SIGKILL)
    for one in many:
        failed = one.failed()
        assert (failed.reason, failed.signal) == (FailReason.SIGNAL, 9)
    start(bench, f"{server.url}/ok").succeeded()


def test_a_worker_that_does_not_obey_is_ended(bench: Bench, server: Server) -> None:
    server.handlers["/"] = server.slow
    asked, neighbour = (start(bench, f"{server.url}/", job={"kill_after": timedelta(0)}) for _ in range(2))
    until(lambda: server.waiting == 2, "both requests to be on their way")
    [worker] = living_in(bench.state)
    os.kill(worker, signal.SIGSTOP)
    asked.end("timeout")
    executor: Any = bench.executors["http"]
    until(lambda: executor.tick(float("inf")), "the time to be over")
    failed = asked.failed()
    assert failed.reason is FailReason.TIMEOUT
    lost = neighbour.outcome()
    assert isinstance(lost, Failed)
    assert lost.reason is FailReason.LOST
    assert alive(f"/proc/{worker}/") == []


def test_an_idle_worker_is_let_go(bench: Bench, server: Server) -> None:
    start(bench, server.url).succeeded()
    executor: Any = bench.executors["http"]
    assert executor.tick(0.0) == 0
    assert executor.tick(float("inf")) == 1
    until(lambda: living_in(bench.state) == [], "the worker to go")
    start(bench, server.url).succeeded()


def test_only_secret_headers_are_hidden(bench: Bench, server: Server) -> None:
    bench.environ["API_TOKEN"] = "tok-very-secret"
    server.answers["/x"] = Answers(200, b"manual ordinary tok-very-secret", {"Content-Type": "text/plain"})
    headers = {"X-Plain": "ordinary", "Traceparent": "own", "X-Key": {"env": "API_TOKEN"}}
    going = start(bench, f"{server.url}/x", headers=headers)
    going.succeeded()
    assert going.output().endswith("manual ordinary ***\n")
    assert server.asked[0].headers["traceparent"] == "own"
