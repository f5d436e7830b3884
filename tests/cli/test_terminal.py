"""What only happens on a terminal: widths, colours, --watch, the line that says how far a run is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.cli.follow import PAUSE
from scheduler.cli.progress import EVERY, progress_line
from scheduler.cli.surface import Surface
from scheduler.cli.text import width
from scheduler.core.requests import Report
from tests.cli.terminal import Terminal
from tests.faces import JOBS, Served
from tests.until import until

SCHEDCTL = [sys.executable, "-c", "from scheduler.cli.main import main; main()"]
Typing = Callable[..., Terminal]


@pytest.fixture
def typing(served: Served) -> Typing:
    def start(*arguments: str, columns: int = 80, lines: int = 24, **environ: str) -> Terminal:
        inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        given = {"SCHEDULER_SOCKET": str(served.socket), "TERM": "xterm", "TZ": "Europe/Paris"}
        return Terminal([*SCHEDCTL, *arguments], {**inherited, **given, **environ}, columns, lines)

    return start


def body(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_the_answer_is_as_wide_as_the_terminal(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    long = "a-job-with-a-name-that-tells-a-whole-story-of-what-it-does-and-why-it-does-it-at-night"
    served.rig.reload(JOBS.replace("minutely:", f"{long}:"))
    served.rig.tick(minutes=1)
    served.rig.tick(minutes=1)
    served.schedctl("pause", long, "--reason", "because " * 30)
    monkeypatch.setattr(Surface, "columns", columns)
    for verb in ("list", "runs", f"describe {long}", "next", f"show {long}", "show", "audit --since 1h", "nodes"):
        capsys.readouterr()
        assert served.schedctl(*verb.split()) in (0, 1)
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if width(line) > columns] == [], verb
        assert any(width(line) > columns - 20 for line in lines) or columns > 80, verb


def test_the_width_is_that_of_the_terminal(served: Served, typing: Typing) -> None:
    served.rig.reload(JOBS.replace("每周报告 of the shop", "word " * 100))
    for columns in (60, 150):
        terminal = typing("show", "report", columns=columns)
        assert terminal.end() == 0
        widest = max(width(line) for line in body(terminal.shown))
        assert columns - 8 < widest <= columns


def test_nothing_is_cut_where_there_is_no_terminal(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    reason = "because " * 60
    served.rig.reload(JOBS.replace("description: ", f"description: {reason}"))
    served.schedctl("pause", "minutely", "--reason", reason)
    served.rig.tick(minutes=1)
    for verb in (["show", "report"], ["describe", "report"], ["runs", "minutely"]):
        capsys.readouterr()
        served.schedctl(*verb)
        out = capsys.readouterr().out
        assert reason.strip() in out, verb
        assert "…" not in out, verb


def test_only_what_stands_out_has_a_colour(served: Served, typing: Typing) -> None:
    served.rig.tick(minutes=1)
    for environ, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        terminal = typing("list", **environ)
        terminal.end()
        assert ("\x1b[36mminutely" in terminal.shown) is coloured
        assert terminal.shown.count("\x1b") == (2 if coloured else 0)
    terminal = typing("list", "--no-color")
    terminal.end()
    assert "\x1b" not in terminal.shown


@pytest.mark.parametrize("columns", [40, 200])
def test_the_state_that_describe_tells_has_its_colour_in_each_line(
    served: Served, typing: Typing, columns: int
) -> None:
    served.rig.tick(minutes=1)
    terminal = typing("describe", "minutely", columns=columns)
    assert terminal.end() == 0
    state = terminal.shown[terminal.shown.index("State") : terminal.shown.index("Schedule")].splitlines()
    assert len(state) > 1 if columns == 40 else len(state) == 1
    assert [line[14:19] for line in state] == ["\x1b[36m"] * len(state)
    assert all(line.endswith("\x1b[0m") for line in state)
    assert r"\x1b" not in terminal.shown


def test_nobody_else_colours_the_terminal(served: Served, typing: Typing) -> None:
    """Also not with the very codes that are ours."""
    reason = "\x1b[32mfine\x1b[0m"
    for verb in (["pause", "report", "--reason", reason], ["describe", "report"], ["next", "report"]):
        terminal = typing(*verb, columns=200)
        assert terminal.end() == 0
        assert "\x1b[32m" not in terminal.shown, verb
        assert r"\x1b[32mfine\x1b[0m" in terminal.shown, verb


def test_watch_draws_until_ctrl_c_and_leaves_the_terminal_as_it_was(served: Served, typing: Typing) -> None:
    for verb in ("list", "runs", "status"):
        terminal = typing(verb, "--watch", "--every", "200ms")
        terminal.until("Ctrl-C ends it")
        terminal.until("next: ")
        terminal.interrupt()
        assert terminal.end() == 0
        assert terminal.shown.startswith("\x1b[?1049h")
        assert terminal.shown.endswith("\x1b[?25h\x1b[?1049l")
        assert "Traceback" not in terminal.shown


def test_watch_shows_what_has_changed(served: Served, typing: Typing) -> None:
    terminal = typing("list", "-w", "--every", "200ms")
    terminal.until("disabled")
    assert "paused" not in terminal.shown
    served.rig.desk.pause(["report"], until=None, reason="", author="ana")
    terminal.until("paused")
    terminal.interrupt()
    assert terminal.end() == 0


def test_watch_goes_on_while_the_daemon_is_away(served: Served, typing: Typing) -> None:
    terminal = typing("list", "-w", "--every", "200ms")
    terminal.until("disabled")
    served.server.stop()
    terminal.until("no daemon can be reached")
    terminal.interrupt()
    assert terminal.end() == 0


def test_a_long_answer_ends_at_the_edge_of_the_terminal(served: Served, typing: Typing) -> None:
    terminal = typing("show", "--file", "nothing.yaml")
    assert terminal.end() == 1
    terminal = typing("list", "-w", lines=6)
    terminal.until("more lines")
    terminal.interrupt()
    assert terminal.end() == 0
    assert terminal.shown.count("\n") <= 6


@pytest.mark.parametrize("arguments", [["-w"], ["--every", "1s"], ["-w", "-o", "json"]])
def test_watch_is_for_terminals(served: Served, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert served.schedctl("list", *arguments) == 2
    assert "--watch draws tables on a terminal" in capsys.readouterr().err


def test_watch_needs_a_duration(served: Served, typing: Typing) -> None:
    terminal = typing("list", "--every", "soon")
    assert terminal.end() == 2
    assert "--every: duration 'soon' is not understood" in terminal.shown
    assert "\x1b[?1049h" not in terminal.shown


def test_a_run_that_is_waited_for_says_how_far_it_is(served: Served, typing: Typing) -> None:
    terminal = typing("run-now", "ticket", "--wait")
    terminal.until("run ")
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    fence = served.rig.run(run.id).fence
    served.rig.attempts.pending.append(Report(run.id, fence, progress=40.0, message="page 200 of 500"))
    served.rig.tick(seconds=3)
    shown = terminal.until("page 200 of 500")
    assert "▓▓▓▓▓▓▓▓░░░░░░░░░░░░ 40 %  page 200 of 500  " in shown
    served.faces.live[run.id] = b"one\n"
    shown = terminal.until("one\n")
    assert "\r\x1b[Kone\n" in shown, "the line makes room for output"
    served.rig.executor.finish(run.id)
    served.rig.tick(seconds=1)
    assert terminal.end() == 0
    assert "COMPLETED" in terminal.shown


class Asked(dict[str, bytes]):
    """What runs have printed, and how often somebody has asked."""

    times = 0

    def get(self, run: str, default: Any = None) -> Any:
        self.times += 1
        return super().get(run, default)


def test_nothing_is_drawn_into_a_line_that_the_run_has_begun(served: Served, typing: Typing) -> None:
    served.schedctl("run-now", "ticket")
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    asked = served.faces.live = Asked({run.id: b"half a line"})
    terminal = typing("logs", "-f", "ticket")
    terminal.until("half a line")
    enough = asked.times + round(2 * EVERY / PAUSE)
    until(lambda: asked.times > enough)
    asked[run.id] += b", and its end\n"
    assert "half a line, and its end\n" in terminal.until("end")
    terminal.until("running")
    terminal.interrupt()
    assert terminal.end() == 130


@pytest.mark.parametrize(
    ("run", "usual", "line"),
    [
        ({"progress": None, "message": None}, None, "running  12s"),
        ({"progress": None, "message": "x\x1by"}, 30.0, r"x\x1by  12s, usually 30s"),
        ({"progress": 0.0, "message": None}, None, "░" * 20 + " 0 %  12s"),
        ({"progress": 250.0, "message": None}, None, "▓" * 20 + " 250 %  12s"),
    ],
)
def test_the_line_of_progress(run: dict[str, Any], usual: float | None, line: str) -> None:
    assert progress_line(run, "12s", usual) == line
