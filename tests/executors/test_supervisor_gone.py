"""What executors make of a supervisor that dies, and of a disk that stalls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.model import FailReason
from scheduler.core.outcome import Snoozed, Succeeded
from scheduler.executors.attempts.records import AttemptRecord
from scheduler.supervisor.owner import Owner
from tests.executors.harness import NODE, Bench, living_in, until
from tests.executors.server import Server


@pytest.fixture
def own(own_children: Owner, tmp_path: Path) -> Iterator[Bench]:
    state = tmp_path / "own" / "work"
    state.mkdir()
    (state / "work.py").write_text(
        "import time\n\ndef hang():\n    print('hanging', flush=True)\n    time.sleep(600)\n\ndef f():\n    return 1\n"
    )
    made = Bench(own_children, state, {})
    yield made
    made.close()


def test_everything_is_lost_and_then_goes_on(own: Bench, own_children: Owner, server: Server) -> None:
    server.handlers["/hang"] = server.slow
    hanging = [
        own.start("command", {"command": "echo hanging; exec sleep 600"}),
        own.start("call", {"function": "work:hang"}),
        own.start("http", {"url": f"{server.url}/hang"}),
    ]
    for going, text in zip(hanging, ("hanging", "hanging", "begun"), strict=True):
        going.until_output(text)
    assert len(living_in(own.state)) == 3
    own_children.kill()
    own_children.replace(NODE)
    own_children.trust(None, None)
    for going in hanging:
        assert going.failed().reason is FailReason.LOST
    until(lambda: living_in(own.state) == [], "all processes to be gone")
    assert server.gone.wait(20)
    own.start("command", {"command": "true"}).succeeded()
    assert own.start("call", {"function": "work:f"}).succeeded().result == 1
    own.start("http", {"url": server.url}).succeeded()
    assert [len(going.outcomes) for going in hanging] == [1, 1, 1]


def test_without_a_supervisor_runs_wait(own: Bench, own_children: Owner, server: Server) -> None:
    own_children.kill()
    until(lambda: own_children._present().gone, "the supervisor to be gone")
    for kind, options in (
        ("command", {"command": "true"}),
        ("call", {"function": "work:f"}),
        ("http", {"url": server.url}),
    ):
        assert isinstance(own.run(kind, options), Snoozed), kind
    own_children.replace(NODE)
    own_children.trust(None, None)
    assert isinstance(own.run("command", {"command": "true"}), Succeeded)


def test_a_stalled_disk_does_not_silence_the_supervisor(
    own: Bench, own_children: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    finish = AttemptRecord.finish

    def stalled(record: AttemptRecord) -> object:
        assert goes_on.wait(30)
        return finish(record)

    monkeypatch.setattr(AttemptRecord, "finish", stalled)
    many = [own.start("command", {"command": "true"}) for _ in range(8)]
    many += [own.start("call", {"function": "work:f"}) for _ in range(4)]
    until(lambda: not [pid for pid in living_in(own.state) if b"true" in _command(pid)], "the commands to end")
    before = own_children._present().answered_at
    own_children.ping()
    until(lambda: own_children._present().answered_at > before, "an answer")
    goes_on.set()
    assert all(isinstance(one.outcome(), Succeeded) for one in many)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("command", {"command": "true"}),
        ("call", {"function": "os:getpid"}),
        ("http", {"method": "GET", "url": "http://127.0.0.1:9/"}),
    ],
)
def test_what_the_supervisor_refuses_costs_nothing(bench: Bench, kind: str, options: dict[str, Any]) -> None:
    """A fresh one refuses all until its daemon vouches for the node; nothing of these runs has begun."""
    outcome = bench.run(kind, options, run={"node": "a-former-life"})
    assert isinstance(outcome, Snoozed), outcome
    assert "serves node" in outcome.error
