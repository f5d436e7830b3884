"""What is asked before a run of an event begins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.core.execution import Launch
from scheduler.core.model import Cause, FailReason
from scheduler.core.outcome import Canceled
from scheduler.core.secret import Secret
from scheduler.core.source import FetchCurrent
from scheduler.executors.registry import informed
from scheduler.supervisor.owner import Owner
from tests.executors.harness import Bench, Going, make_run, until
from tests.executors.server import Answers, Server, as_json

EVENT = {"id": "e1", "source": "payments", "subject": "orders/7 ü?x=1"}
PAYLOAD = {"schema": 1, "event": EVENT, "data": {"n": 3}, "current": None}
CAT = ["sh", "-c", 'cat "$SCHED_PAYLOAD_FILE"']


@pytest.fixture(scope="module")
def bench(children: Owner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(children, tmp_path_factory.mktemp("current"), {"TOKEN": "tok-very-secret"})
    made.executors = informed(made.executors, made.context)
    yield made
    made.close()


def start(bench: Bench, fetch: FetchCurrent, kind: str = "command", **how: Any) -> Going:
    options = how.pop("options", {"command": CAT})
    job = bench.job(kind, options, **how)
    launch = bench.preparation.prepare(make_run(job.name, payload=PAYLOAD, cause=Cause.EVENT), job, None)
    assert isinstance(launch, Launch)
    going = Going(bench, replace(launch, fetch=fetch))
    bench.executors[kind].start(going.launch, going.done)
    return going


def test_the_handler_finds_the_present_state_in_its_payload(bench: Bench, server: Server) -> None:
    server.answers["/orders"] = Answers(body=as_json({"status": "paid"}))
    going = start(bench, FetchCurrent(f"{server.url}/orders", {"Authorization": Secret(env="TOKEN", prefix="Bearer ")}))
    going.succeeded()
    assert json.loads(going.output()) == {**PAYLOAD, "current": {"status": "paid"}}
    (asked,) = server.asked
    assert (asked.method, asked.headers["authorization"]) == ("GET", "Bearer tok-very-secret")


def test_what_the_event_says_is_one_part_of_the_address(bench: Bench, server: Server) -> None:
    """A stranger's text leads nowhere else."""
    url = f"{server.url}/v1/{{{{ event.subject }}}}/{{{{ data.n }}}}?id={{{{ event.id }}}}"
    start(bench, FetchCurrent(url)).outcome()
    (asked,) = server.asked
    assert asked.path == "/v1/orders%2F7%20%C3%BC%3Fx%3D1/3?id=e1"


def test_it_is_sent_on_to_whom_an_http_job_tells(bench: Bench, server: Server) -> None:
    server.answers["/orders"] = Answers(body=as_json([1, 2]))
    going = start(bench, FetchCurrent(f"{server.url}/orders"), "http", options={"url": f"{server.url}/handler"})
    going.outcome()
    assert [(one.method, one.path) for one in server.asked] == [("GET", "/orders"), ("POST", "/handler")]
    assert json.loads(server.asked[1].body) == {**PAYLOAD, "current": [1, 2]}


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_gone_has_no_state(bench: Bench, server: Server, status: int) -> None:
    server.answers["/orders"] = Answers(status, b"no such order")
    going = start(bench, FetchCurrent(f"{server.url}/orders"))
    going.succeeded()
    assert json.loads(going.output())["current"] is None


@pytest.mark.parametrize(("status", "retryable"), [(500, True), (429, True), (403, False)])
def test_without_an_answer_the_handler_does_not_begin(
    bench: Bench, server: Server, status: int, retryable: bool
) -> None:
    server.answers["/orders"] = Answers(status, b"no")
    going = start(bench, FetchCurrent(f"{server.url}/orders"))
    failed = going.failed()
    assert (failed.reason, failed.retryable) == (FailReason.HTTP, retryable)
    assert failed.error.startswith("fetch_current: GET ")
    assert going.output() == ""


def test_an_answer_that_is_no_json_is_said(bench: Bench, server: Server) -> None:
    server.answers["/orders"] = Answers(200, b"<html>", {"Content-Type": "text/html"})
    failed = start(bench, FetchCurrent(f"{server.url}/orders")).failed()
    assert "the answer is no JSON" in failed.error
    assert not failed.retryable


@pytest.mark.parametrize(
    ("fetch", "words"),
    [
        (FetchCurrent("http://127.0.0.1/{{ event.missing }}"), "url: 'dict object' has no attribute 'missing'"),
        (FetchCurrent("http://127.0.0.1/", {"X": Secret(env="NOT_THERE")}), "NOT_THERE"),
    ],
)
def test_what_cannot_be_asked_is_said(bench: Bench, fetch: FetchCurrent, words: str) -> None:
    assert words in start(bench, fetch).failed().error


@pytest.mark.parametrize("kind", ["command", "http"])
def test_it_is_ended_while_it_asks(bench: Bench, server: Server, kind: str) -> None:
    options = {"command": CAT, "url": f"{server.url}/handler"}
    server.handlers["/slow"] = server.slow
    going = start(bench, FetchCurrent(f"{server.url}/slow"), kind, options=options, kill_after=timedelta(seconds=5))
    until(lambda: server.asked, "the question")
    going.end("cancel")
    assert isinstance(going.outcome(), Canceled)
    assert len(server.asked) == 1


def test_it_is_ended_after_it_asked(bench: Bench, server: Server) -> None:
    server.answers["/orders"] = Answers(body=as_json({}))
    going = start(bench, FetchCurrent(f"{server.url}/orders"), options={"command": ["sh", "-c", "echo on; sleep 60"]})
    going.until_output("on")
    going.end("cancel")
    assert isinstance(going.outcome(), Canceled)
