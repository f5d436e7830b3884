"""What every executor guarantees, over all kinds that are found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Canceled, Failed, GivenBack, Succeeded
from scheduler.executors.registry import discover
from scheduler.supervisor.owner import Owner
from tests.executors.harness import Bench, Going, alive, living_in, make_run, secret, until
from tests.executors.listing import plug_in
from tests.executors.server import Answers, Server, reply

FUNCTIONS = """
import json, os, time

def echo(payload=None):
    print("seen")
    return {"seen": payload}

def fail(payload=None):
    raise RuntimeError("broken on purpose")

def hang(payload=None):
    print("hanging", flush=True)
    time.sleep(600)
"""


@dataclass
class Kind:
    """How one kind of action does what the contract is about."""

    echo: tuple[str, Any]
    fail: tuple[str, Any]
    hang: tuple[str, Any]
    cannot_start: tuple[str, Any]
    begun: Callable[[Going], None]


def _command(bench: Bench, server: Server) -> Kind:
    report = 'import json,os; p=json.load(open(os.environ["SCHED_PAYLOAD_FILE"])); print("seen"); '
    report += 'open(os.environ["SCHED_REPORT_FILE"],"a").write(json.dumps({"result": {"seen": p}}))'
    return Kind(
        ("command", {"command": [sys.executable, "-c", report]}),
        ("command", {"command": "exit 3"}),
        ("command", {"command": "echo hanging; exec sleep 600"}),
        ("command", {"command": ["no-such-program"]}),
        lambda going: going.until_output("hanging"),
    )


def _call(bench: Bench, server: Server) -> Kind:
    if not (bench.state / "functions.py").exists():
        (bench.state / "functions.py").write_text(FUNCTIONS)
    return Kind(
        ("call", {"function": "functions:echo"}),
        ("call", {"function": "functions:fail"}),
        ("call", {"function": "functions:hang"}),
        ("call", {"function": "nowhere:echo"}),
        lambda going: going.until_output("hanging"),
    )


def _http(bench: Bench, server: Server) -> Kind:
    def echo(handler: Any) -> None:
        reply(handler, Answers(body=b'{"seen": ' + handler.body + b"}"))

    server.handlers["/echo"] = echo
    server.handlers["/hang"] = server.slow
    server.answers["/fail"] = Answers(status=500)
    return Kind(
        ("http", {"url": f"{server.url}/echo"}),
        ("http", {"url": f"{server.url}/fail"}),
        ("http", {"url": f"{server.url}/hang"}),
        ("http", {"url": "nothing://here/"}),
        lambda going: going.until_output("begun"),
    )


def _compensate(bench: Bench, server: Server) -> Kind:
    bench.environ["SCHEDULER_PLUGINS"] = plug_in(bench.state / "plugins")

    def listing(does: str, kind: str = "listing") -> tuple[str, Any]:
        return "compensate", {"source": "payments", "compensator": kind, "with": {"does": does}}

    return Kind(
        listing("echo"),
        listing("fail"),
        listing("hang"),
        listing("echo", "nowhere"),
        lambda going: going.until_output("begun"),
    )


KINDS = {"command": _command, "call": _call, "compensate": _compensate, "http": _http}


def test_every_kind_is_covered() -> None:
    assert set(discover()) == set(KINDS)


@pytest.fixture(scope="module")
def bench(children: Owner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all of these tests, so that they also meet workers that others have used."""
    made = Bench(children, tmp_path_factory.mktemp("contract"), {})
    yield made
    made.close()


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest, bench: Bench, server: Server) -> Kind:
    return KINDS[request.param](bench, server)


def test_payload_in_result_out(bench: Bench, kind: Kind) -> None:
    payload = {"text": "größer 😀", "n": [1, 2.5, None, True]}
    going = bench.start(*kind.echo, run={"payload": payload})
    assert going.succeeded().result == {"seen": payload}
    [output] = bench.records.outputs([(going.launch.run.id, 1)])
    assert output.complete
    assert output.omitted == 0


def test_failure(bench: Bench, kind: Kind) -> None:
    failed = bench.start(*kind.fail).failed()
    assert failed.reason in (FailReason.EXIT, FailReason.ERROR, FailReason.HTTP)
    assert failed.error
    assert failed.retryable


def test_what_cannot_start_is_an_outcome(bench: Bench, kind: Kind) -> None:
    going = bench.start(*kind.cannot_start)
    failed = going.failed()
    assert failed.reason in (FailReason.SPAWN, FailReason.ERROR, FailReason.HTTP)
    assert "no-such-program" in failed.error or "nowhere" in failed.error or "nothing" in failed.error


def test_missing_work_directory_is_an_outcome(bench: Bench, kind: Kind) -> None:
    going = bench.start(*kind.echo, workdir="/no/such/directory", run={"payload": 1})
    if kind.echo[0] == "http":
        going.succeeded()  # a request has no work directory
    else:
        failed = going.failed()
        assert failed.reason is FailReason.SPAWN
        assert "/no/such/directory" in failed.error


@pytest.mark.parametrize("why", ["timeout", "cancel", "lost", "drain"])
def test_ending(bench: Bench, kind: Kind, why: str) -> None:
    going = bench.start(*kind.hang)
    kind.begun(going)
    going.end(why)
    outcome = going.outcome()
    match why:
        case "timeout":
            assert isinstance(outcome, Failed)
            assert outcome.reason is FailReason.TIMEOUT
        case "cancel":
            assert isinstance(outcome, Canceled)
            assert outcome.why == "cancel"
        case "lost":
            assert isinstance(outcome, Failed)
            assert outcome.reason is FailReason.LOST
        case "drain":
            assert outcome == GivenBack(started=True)
    if kind.hang[0] != "http":
        assert alive(going.launch.run.id) == []


def test_ending_at_once(bench: Bench, kind: Kind) -> None:
    going = bench.start(*kind.hang)
    going.end("cancel")
    assert isinstance(going.outcome(), Canceled)


def test_done_is_called_once_whatever_comes_later(bench: Bench, kind: Kind) -> None:
    going = bench.start(*kind.hang)
    for why in ("timeout", "cancel", "cancel"):
        going.end(why)
    first = going.outcome()
    assert isinstance(first, Failed)
    assert first.reason is FailReason.TIMEOUT
    going.end("lost")
    assert isinstance(bench.run(*kind.echo, run={"payload": 1}), Succeeded)
    assert going.outcomes == [first]


def test_ending_what_is_not_there_does_nothing(bench: Bench, kind: Kind) -> None:
    bench.executors[kind.echo[0]].end("no-such-run", "cancel")
    assert bench.executors[kind.echo[0]].tick(0.0) == 0


def test_many_at_once(bench: Bench, kind: Kind) -> None:
    many = [bench.start(*kind.echo, run={"payload": number}) for number in range(12)]
    assert [one.succeeded().result for one in many] == [{"seen": number} for number in range(12)]


def test_secrets_are_masked_in_output_and_result(bench: Bench, kind: Kind) -> None:
    bench.environ["TOKEN_SOURCE"] = "hunter2-and-more"
    going = bench.start(
        *kind.echo,
        secrets={"TOKEN": secret("TOKEN_SOURCE")},
        run={"payload": {"nested": ["x hunter2-and-more y"]}},
    )
    assert going.succeeded().result == {"seen": {"nested": ["x *** y"]}}
    assert "hunter2-and-more" not in going.output()


def test_missing_secret_names_it(bench: Bench, kind: Kind) -> None:
    job = bench.job(*kind.echo, secrets={"TOKEN": secret("NOT_SET")})
    failed = bench.preparation.prepare(make_run("example"), job, None)
    assert isinstance(failed, Failed)
    assert failed.reason is FailReason.SPAWN
    assert "TOKEN" in failed.error
    assert "NOT_SET" in failed.error


@pytest.mark.parametrize("name", sorted(KINDS))
def test_nothing_is_left_alive_after_closing(children: Owner, tmp_path: Path, server: Server, name: str) -> None:
    fresh = Bench(children, tmp_path, {})
    kind = KINDS[name](fresh, server)
    fresh.start(*kind.echo, run={"payload": 1}).succeeded()
    fresh.close()
    until(lambda: living_in(fresh.state) == [], "workers to go")
