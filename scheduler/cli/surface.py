"""What a verb works with: the daemon, the clock, and where its answer goes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from scheduler.cli.daemon import Daemon
from scheduler.cli.shown import ShownOutput
from scheduler.cli.table import Column, table
from scheduler.cli.text import visible, visible_json
from scheduler.cli.times import at, both, local_zone
from scheduler.streams import tell

FORMATS = ("table", "json", "yaml", "name")

_COLORS = {
    "ok": "green",
    "up": "green",
    "COMPLETED": "green",
    "running": "cyan",
    "RUNNING": "cyan",
    "PENDING": "cyan",
    "waiting": "cyan",
    "paused": "yellow",
    "late": "yellow",
    "unknown": "yellow",
    "SKIPPED": "yellow",
    "CANCELED": "yellow",
    "missed": "red",
    "failing": "red",
    "overdue": "red",
    "alarm": "red",
    "FAILED": "red",
}


_COMMAND = re.compile(r"(?<![\w/.-])schedctl (?=[a-z]+(?:-[a-z]+)*(?:$|[\s`);,]))")
_COLOR_CODE = re.compile(r"(\x1b\[[0-9;]*m)")


class Surface:
    """Data go to stdout, messages to stderr. On a terminal tables fit its width; elsewhere they are as wide as their
    content and carry no colour, so that what follows in a pipe can rely on them.

    Nothing that comes from elsewhere (a description, an error, a reason) can move the cursor or hide text: whatever is
    not printable is written out. A stderr that cannot be written is ignored, a stdout that cannot is an OSError."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = os.environ if environ is None else environ
        self.format = "table"
        self.socket: str | None = None
        self.watching = False
        self.every = "2s"
        self.no_color = bool(self.environ.get("NO_COLOR")) or self.environ.get("TERM") == "dumb"
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.page: list[str] | None = None
        """Lines that are kept instead of written, for somebody who draws them."""
        self.exact = False
        """What runs printed goes to a terminal byte by byte."""
        self._printed: ShownOutput | None = None
        self._daemon: Daemon | None = None
        self._zone: str | None = None

    @property
    def daemon(self) -> Daemon:
        if self._daemon is None:
            # What machines read stays what it is, in the notation of its format.
            self._daemon = Daemon(self.socket, self.environ, clean=self.format == "table")
        return self._daemon

    @property
    def zone(self) -> str:
        """The zone in which this person lives."""
        if self._zone is None:
            self._zone = local_zone()
        return self._zone

    @property
    def columns(self) -> int | None:
        """The width of the terminal, None if the answer goes elsewhere."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    @property
    def colors(self) -> bool:
        return not self.no_color and sys.stdout.isatty()

    def when(self, text: str | None, zone: str | None = None) -> str:
        """An instant of the daemon's JSON in this person's zone, and how far it is: `Mon 08:00 Europe/Paris (in 2h)`;
        `-` for none. Where it is the clock of another `zone` that counts, that comes first."""
        if text is None or zone in (None, self.zone):
            return both(text, self.zone, self.now())
        return f"{at(text, zone, self.now())} = {both(text, self.zone, self.now())}"

    def out(self, text: str = "") -> None:
        shown = self._safe(text)
        if self.page is None:
            sys.stdout.write(shown + "\n")
        else:
            self.page += shown.split("\n")

    def say(self, text: str) -> None:
        """A message for the person; never data. Commands in it are `pasted`."""
        shown = self._safe(self.pasted(text))
        if self.page is not None:
            self.page += shown.split("\n")
            return
        sys.stdout.flush()
        tell(shown + "\n")

    def then(self, command: str) -> None:
        """The last line: what to type next, as it can be pasted (`command_line` quotes). Only for people."""
        if self.format == "table":
            self.say(f"next: {command}")

    def pasted(self, text: str) -> str:
        """`text` with its commands for the daemon that this one was typed for: with --socket, if that was given."""
        if self.socket is None:
            return text
        return _COMMAND.sub(lambda found: f"{found[0]}--socket {shlex.quote(self.socket or '')} ", text)

    def raw(self, data: bytes) -> None:
        """What a run printed, as it is; but on a terminal nothing in it acts upon that, unless `exact`."""
        if self.exact or not sys.stdout.isatty():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        if self._printed is None:
            self._printed = ShownOutput(colors=self.colors)
        sys.stdout.write(self._printed.feed(data))
        sys.stdout.flush()

    def end_line(self, data: bytes) -> None:
        """After the last `raw`, which ended with `data`: what follows begins in a line of its own. Where the data go
        elsewhere than to a terminal they stay as they are, and the message begins that line."""
        if self._printed is not None:
            sys.stdout.write(self._printed.end())
        if data and not data.endswith(b"\n"):
            if sys.stdout.isatty():
                self.out()
            else:
                self.say("")

    def style(self, word: str, text: str | None = None) -> str:
        """`text` (default: the word itself) in the colour of that state, on a terminal that wants colour."""
        color = _COLORS.get(word)
        shown = word if text is None else text
        if color is None or not self.colors:
            return shown
        return click.style(visible(shown), fg=color)

    def structured(self, data: Any, names: Iterable[str]) -> bool:
        """Writes `data` if another format than a table was asked for; whether it did."""
        if self.format == "json":
            self.out(visible_json(json.dumps(data, ensure_ascii=False, indent=2)))
        elif self.format == "yaml":
            import yaml

            text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
            if text != visible(text):
                text = yaml.safe_dump(data, sort_keys=False)
            self.out(text.rstrip("\n"))
        elif self.format == "name":
            for name in names:
                self.out(name)
        return self.format != "table"

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], words: Sequence[str] = ()) -> None:
        """A table; `words` colours each row's line by a state."""
        lines = table(columns, rows, self.columns)
        self.out(lines[0])
        for index, line in enumerate(lines[1:]):
            self.out(self.style(words[index], line) if words and words[index] not in _CALM else line)

    def _safe(self, text: str) -> str:
        """Printable, apart from line ends and the colours that `style` gives."""
        if text.isprintable():
            return text
        if not self.colors or "\x1b" not in text:
            return visible(text)
        return "".join(one if _COLOR_CODE.fullmatch(one) else visible(one) for one in _COLOR_CODE.split(text))


_CALM = frozenset({"ok", "up", "COMPLETED"})
"""States whose lines need no colour: only what stands out is coloured."""
