"""The protocol of sd_notify(3), as whoever listens hears it."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
import structlog

from scheduler.observe.notify_socket import NotifySocket, monotonic_usec
from tests.systemd.conftest import Hire


@pytest.mark.parametrize("abstract", [False, True])
def test_a_message_reaches_the_service_manager(hire: Hire, abstract: bool) -> None:
    manager = hire(abstract=abstract)
    notify = NotifySocket.of(manager.environment)
    assert notify.there
    notify.send(READY=1, STATUS="3 jobs, 1 running")
    assert manager.wait(lambda m: "READY" in m) == {"READY": "1", "STATUS": "3 jobs, 1 running"}
    assert manager.senders() == {os.getpid()}


def test_a_value_with_line_breaks_says_nothing_else(hire: Hire) -> None:
    """A text of somebody else's (an error, a name) must not become another message."""
    manager = hire()
    NotifySocket.of(manager.environment).send(STATUS="bad file:\n  line 3\nREADY=1\rSTOPPING=1")
    assert manager.wait(lambda m: "STATUS" in m) == {"STATUS": "bad file:   line 3 READY=1 STOPPING=1"}


def test_without_a_service_manager_nothing_is_said() -> None:
    for environ in ({}, {"NOTIFY_SOCKET": ""}, {"WATCHDOG_USEC": "1000000"}):
        notify = NotifySocket.of(environ)
        assert not notify.there
        assert notify.watchdog is None
        notify.send(READY=1)


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_for_this_process(environ: dict[str, str], seconds: float | None) -> None:
    assert NotifySocket.of({"NOTIFY_SOCKET": "/nowhere", **environ}).watchdog == seconds


def test_a_service_manager_that_is_gone_disturbs_nothing_and_is_said_once(tmp_path: Path, hire: Hire) -> None:
    notify = NotifySocket(str(tmp_path / "gone"), None)
    with structlog.testing.capture_logs() as said:
        notify.send(READY=1)
        notify.send(READY=1)
    assert [line["event"] for line in said] == ["service_manager_unheard"]
    manager = hire()
    (tmp_path / "gone").symlink_to(manager.address)
    notify.send(READY=1)
    manager.wait(lambda m: "READY" in m)
    (tmp_path / "gone").unlink()
    with structlog.testing.capture_logs() as said:
        notify.send(READY=1)
    assert len(said) == 1


def test_a_service_manager_that_does_not_read_holds_nobody_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.observe.notify_socket.PATIENCE", 0.1)
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with deaf:
        deaf.bind(str(tmp_path / "deaf"))
        notify = NotifySocket(str(tmp_path / "deaf"), None)
        with structlog.testing.capture_logs() as said:
            for _ in range(10_000):
                notify.send(STATUS="x" * 1000)
                if said:
                    break
    assert [line["event"] for line in said] == ["service_manager_unheard"]


def test_the_instant_of_a_reload_is_of_the_monotonic_clock() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert before <= monotonic_usec() <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
