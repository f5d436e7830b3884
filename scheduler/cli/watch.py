"""`--watch`: an answer that is drawn again and again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from scheduler.cli.surface import Surface
from scheduler.cli.times import absolute
from scheduler.core.durations import parse_duration
from scheduler.core.errors import InvalidInput, SchedulerError

LEAST = 0.2
"""Seconds between two looks, however few are asked for."""

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Another screen, without a cursor, on which long lines end at its edge."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_TOP, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def watch(surface: Surface, answer: Callable[[], Any]) -> int:
    """Draws until Ctrl-C, which is its usual end: exit 0, and the terminal is as it was before. A daemon that is away
    is an answer, too."""
    if surface.format != "table" or not sys.stdout.isatty():
        raise click.UsageError(
            "--watch draws tables on a terminal; for a program: while sleep 2; do schedctl list -o json; done"
        )
    every = _seconds(surface.every)
    sys.stdout.write(_ENTER)
    try:
        while True:
            _paint(surface, _lines(surface, answer))
            time.sleep(every)
    except KeyboardInterrupt:
        return 0
    finally:
        surface.page = None
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _lines(surface: Surface, answer: Callable[[], Any]) -> list[str]:
    surface.page = []
    try:
        answer()
    except SchedulerError as error:
        surface.say(f"schedctl: {error.reason}")
    return surface.page


def _paint(surface: Surface, lines: Sequence[str]) -> None:
    head = f"every {surface.every}, {absolute(surface.now(), surface.zone, surface.now())}, Ctrl-C ends it"
    room = shutil.get_terminal_size().lines - 2
    shown = list(lines) if len(lines) <= room else [*lines[: room - 1], f"… {len(lines) - room + 1} more lines"]
    text = "\n".join(line + _REST_OF_LINE for line in [head, "", *shown])
    sys.stdout.write(_TOP + text + _REST_OF_SCREEN)
    sys.stdout.flush()


def _seconds(text: str) -> float:
    try:
        return max(LEAST, parse_duration(text).total_seconds())
    except InvalidInput as error:
        raise click.UsageError(f"--every: {error}") from None
