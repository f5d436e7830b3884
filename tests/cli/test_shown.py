"""What a run printed, on a terminal and elsewhere."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.cli.shown import ShownOutput
from tests.cli.terminal import Terminal
from tests.faces import Served

SCHEDCTL = [sys.executable, "-c", "from scheduler.cli.main import main; main()"]
CLEARS = b"a\x1b[2Jb\x07\r50 %\r\nc\x1b]0;title\x07"
SAFE = r"a\x1b[2Jb\x07\r50 %" + "\n" + r"c\x1b]0;title\x07"


def shown(data: bytes, *, colors: bool = True) -> str:
    output = ShownOutput(colors=colors)
    return output.feed(data) + output.end()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        (CLEARS, SAFE),
        ("寿司 é\u202e".encode(), "寿司 é\\u202e"),
        (b"\xff\xfe", r"\xff\xfe"),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"\x1b[1;38;5;8mx\x1b[m", "\x1b[1;38;5;8mx\x1b[m"),
        (b"\x1b[38;2;0;8;255mleft on", "\x1b[38;2;0;8;255mleft on\x1b[0m"),
        (b"\x1b[8mhidden", r"\x1b[8mhidden"),
        (b"\x1b[31;8mhidden", r"\x1b[31;8mhidden"),
        (b"\x9b31m \xc2\x9b31m", r"\x9b31m \x9b31m"),
        (b"cut \xe5\xaf", r"cut \xe5\xaf"),
        (b"cut \x1b[3", r"cut \x1b[3"),
    ],
)
def test_what_a_terminal_is_given(data: bytes, text: str) -> None:
    assert shown(data) == text


def test_colours_can_be_left_out() -> None:
    assert shown(b"\x1b[31mred\x1b[0m\x1b[2J", colors=False) == r"red\x1b[2J"


@given(
    st.lists(st.sampled_from([b"\x1b", b"[", b"3", b"1", b"m", b";", b"8", b"\r", b"\n", b"\xe5\xaf\xbf", b"\xff"])),
    st.data(),
)
def test_it_is_the_same_in_any_pieces(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    output = ShownOutput(colors=True)
    assert output.feed(whole[:cut]) + output.feed(whole[cut:]) + output.end() == shown(whole)


@pytest.fixture
def printed(served: Served) -> str:
    """A run that is at work and has printed what clears a screen."""
    served.schedctl("run-now", "ticket")
    served.rig.tick()
    (run,) = served.rig.runs("ticket")
    served.faces.live[run.id] = CLEARS
    return run.id


def typed(served: Served, *arguments: str) -> Terminal:
    environ = {**os.environ, "SCHEDULER_SOCKET": str(served.socket), "TERM": "xterm"}
    environ.pop("NO_COLOR", None)
    return Terminal([*SCHEDCTL, *arguments], environ, columns=200)


def test_logs_cannot_clear_the_screen(served: Served, printed: str) -> None:
    terminal = typed(served, "logs", "ticket")
    terminal.end()
    assert SAFE + "\n" in terminal.shown
    assert "\x1b[2J" not in terminal.shown
    terminal = typed(served, "logs", "ticket", "--raw")
    terminal.end()
    assert "a\x1b[2Jb\x07\r50 %" in terminal.shown


def test_neither_can_a_run_that_is_waited_for(served: Served) -> None:
    for raw in ((), ("--raw",)):
        terminal = typed(served, "run-now", "ticket", "--wait", *raw)
        terminal.until("run ")
        served.rig.tick()
        run = served.rig.runs("ticket")[-1]
        served.faces.live[run.id] = b"a\x1b[2Jb\n"
        terminal.until("a\x1b[2Jb\n" if raw else r"a\x1b[2Jb" + "\n")
        assert ("\x1b[2J" in terminal.shown) is bool(raw)
        served.rig.executor.finish(run.id)
        served.rig.tick(seconds=1)
        assert terminal.end() == 0


def test_a_pipe_gets_every_byte(served: Served, printed: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for raw in ((), ("--raw",)):
        capfdbinary.readouterr()
        served.schedctl("logs", "ticket", *raw)
        out, err = capfdbinary.readouterr()
        assert out == CLEARS
        # What is said besides begins in a line of its own, where both go to the same place.
        assert b"\n\nRUNNING" in err


def test_a_message_is_not_torn_off_output_that_ends_its_line(
    served: Served, printed: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    served.faces.live[printed] = b"whole\n"
    capfdbinary.readouterr()
    served.schedctl("logs", "ticket")
    out, err = capfdbinary.readouterr()
    assert out == b"whole\n"
    assert b"\n\n" not in err
