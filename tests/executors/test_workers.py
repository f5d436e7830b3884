"""Worker processes that cannot be had, that find no room, or whose task is ended between two of its homes."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.outcome import Canceled, GivenBack, Snoozed
from scheduler.executors.workers import pool, roster
from scheduler.executors.workers.channels import Channels
from scheduler.executors.workers.wire import pack
from tests.executors.harness import Bench, Going, until
from tests.executors.listing import plug_in
from tests.executors.server import Server

SOURCE = """
import os, time

def plain():
    return os.getpid()

def hangs():
    print("hanging", flush=True)
    time.sleep(600)

def spoils():
    os.putenv("LEAKED", "yes")
    os.environ["TZ"] = "EST5"
    time.tzset()
    os.environ["TZ"] = "Asia/Shanghai"
    return os.getpid()

def looks():
    return [os.popen("echo $LEAKED").read().strip(), time.strftime("%Z"), os.getpid()]
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"SCHEDULER_PLUGINS": plug_in(tmp_path / "plugins"), "PATH": os.environ["PATH"]}


@pytest.fixture
def begin(bench: Bench, server: Server) -> Callable[..., Going]:
    """An attempt of a kind."""
    (bench.state / "work.py").write_text(SOURCE)

    def started(kind: str, does: str = "plain", **job: Any) -> Going:
        options: dict[str, dict[str, Any]] = {
            "call": {"function": f"work:{does}"},
            "http": {"url": server.url, "method": "POST"},
            "compensate": {"source": "payments", "compensator": "listing", "with": {}},
        }
        return bench.start(kind, options[kind], **job)

    return started


def _none_left(*arguments: Any) -> Any:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize(("module", "name"), [(pool, "anonymous_file"), (socket, "socketpair")])
@pytest.mark.parametrize("kind", ["call", "http", "compensate"])
def test_without_descriptors_a_run_waits_and_nothing_of_it_is_left(
    begin: Callable[..., Going], monkeypatch: pytest.MonkeyPatch, kind: str, module: Any, name: str
) -> None:
    """A task that was told to be over must not be carried out after all, and none must be given to nobody."""
    begin(kind).succeeded() if kind != "http" else None  # Its channels are there.
    with monkeypatch.context() as patched:
        patched.setattr(roster, "STARTING", 100)
        patched.setattr(module, name, _none_left)
        patched.setattr(roster.Roster, "_with_room", lambda self, place: None)
        outcome = begin(kind).outcome()
    assert isinstance(outcome, Snoozed)
    assert "no worker process could be started" in outcome.error
    begin(kind).succeeded()


@pytest.mark.parametrize("kind", ["call", "http", "compensate"])
def test_a_disk_that_takes_no_files_costs_no_retry(bench: Bench, begin: Callable[..., Going], kind: str) -> None:
    begin(kind).succeeded()
    (bench.state / "runs").rename(bench.state / "elsewhere")
    (bench.state / "runs").write_text("not a directory")
    outcome = begin(kind).outcome()
    assert isinstance(outcome, Snoozed)
    assert "make room or access in the state directory" in outcome.error
    (bench.state / "runs").unlink()
    (bench.state / "elsewhere").rename(bench.state / "runs")
    begin(kind).succeeded()


def test_a_call_that_waited_for_a_worker_was_not_started(
    begin: Callable[..., Going], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `on_lost: fail` it would have failed, though nothing of it ran."""
    monkeypatch.setattr(roster, "STARTING", 0)
    waits = begin("call")
    waits.end("drain")
    assert waits.outcome() == GivenBack(started=False)


def test_a_call_that_was_started_is_given_back_as_such(begin: Callable[..., Going]) -> None:
    going = begin("call", "hangs", kill_after=timedelta(seconds=0.1))
    going.until_output("hanging")
    going.end("drain")
    outcome = going.outcome()
    assert isinstance(outcome, GivenBack)
    assert outcome.started


def test_a_task_can_be_ended_while_it_changes_its_worker(
    bench: Bench, begin: Callable[..., Going], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that was changed lets the worker refuse it; it waits for a fresh one then."""
    begin("call").succeeded()
    (bench.state / "work.py").write_text(SOURCE + "\n# changed\n")
    going: list[Going] = []
    remove = roster.Roster.remove

    def ended_before(self: roster.Roster, worker: Any) -> None:
        remove(self, worker)
        found = self.withdraw(going[0].launch.run.id)
        assert found is not None, "it is nowhere"
        self.wait(found)

    monkeypatch.setattr(roster.Roster, "remove", ended_before)
    ends = pool.Pool._exited

    def ended_after(self: pool.Pool, worker: Any, ended: Any) -> None:
        monkeypatch.setattr(pool.Pool, "_go_on", lambda self, place: None)
        ends(self, worker, ended)
        going[0].end("cancel")

    monkeypatch.setattr(pool.Pool, "_exited", ended_after)
    going.append(begin("call", "hangs"))
    assert isinstance(going[0].outcome(), Canceled)


def test_what_a_run_hid_from_its_process_does_not_reach_the_next(begin: Callable[..., Going]) -> None:
    """`putenv` and `tzset` leave nothing in `os.environ` to compare with."""
    shanghai = {"TZ": "Asia/Shanghai"}
    pid = begin("call", "spoils", env=shanghai).succeeded().result
    assert begin("call", "looks", env=shanghai).succeeded().result == ["", "CST", pid]


def test_what_goes_wrong_with_a_message_is_not_for_its_channel_to_pay() -> None:
    heard: list[object] = []
    closed: list[bool] = []

    def hear(message: dict[str, Any]) -> None:
        heard.append(message["n"])
        if message["n"] == 1:
            _none_left()

    channels = Channels()
    ours, theirs = socket.socketpair()
    channels.attach(ours, hear, lambda: closed.append(True))
    with theirs:
        theirs.sendall(pack({"n": 1}) + pack({"n": 2}))
        until(lambda: heard == [1, 2], "both messages")
        theirs.sendall(pack({"n": 3}))
        until(lambda: heard == [1, 2, 3], "a further one")
        assert not closed
    until(lambda: closed, "the end")
    channels.close()
