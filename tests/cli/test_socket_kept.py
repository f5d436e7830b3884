"""A daemon that was named on the command line is named in what can be pasted, too."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.screen import Screen
from tests.cli.typed import Typist


@pytest.mark.parametrize("line", ["list", "describe report", "status", "next report", "runs", "nodes", "diff"])
def test_next_steps_go_to_the_same_daemon(screen: Screen, line: str) -> None:
    socket = str(screen.served.socket)
    screen(*line.split())
    before = screen.next
    screen(*line.split(), "--socket", socket)
    assert screen.next.startswith(f"schedctl --socket {socket} ")
    assert screen.next.replace(f"--socket {socket} ", "") == before
    step = shlex.split(screen.next)[1:]
    if step[2] in ("list", "describe", "runs", "status", "next", "nodes", "diff"):
        screen(*step)
        assert screen.code in (0, 1)


def test_hints_and_facts_do_so(screen: Screen) -> None:
    socket = str(screen.served.socket)
    screen("describe", "nobody", "--socket", socket)
    assert f"`schedctl --socket {socket} list` shows all jobs" in screen.err
    (run,) = screen("run-now", "ticket")
    screen.rig.tick()
    assert f"schedctl --socket {socket} logs {run[-8:]}" in "\n".join(screen("runs", run, "--socket", socket))
    screen("run-now", "minutely")
    screen("run-now", "minutely", "--socket", socket)
    assert screen.err.count(f"schedctl --socket {socket} run-now minutely") == 2


def test_a_path_is_quoted_and_prose_stays(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Typist(capsys)("explain", "5 4 * * *", "--socket", "my daemon.sock")
    assert "next: schedctl --socket 'my daemon.sock' next" in answer.err
    answer = Typist(capsys)("list", "--socket", "my daemon.sock")
    assert answer.code == 3
    assert "schedctl: no daemon can be reached" in answer.err
