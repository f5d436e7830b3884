"""What a run printed, as a terminal may be given it."""

from __future__ import annotations

import codecs
import re

from scheduler.cli.text import visible

# All that ECMA-48 8.3.117 calls SGR, but 8: concealed text.
_ONE = r"(?:[34]8[;:]5[;:]\d{1,3}|[34]8[;:]2(?:[;:]\d{1,3}){3}|0*[0-79]|[1-9]\d|10[0-7])?"
_COLOR = re.compile(rf"(\x1b\[{_ONE}(?:;{_ONE})*m)", re.ASCII)
_BEGUN = re.compile(r"(?:\r|\x1b(?:\[[0-9;:]{0,40})?)\Z", re.ASCII)
"""What may become a line end or a colour with what comes next."""
_RESET = "\x1b[0m"


class ShownOutput:
    """Bytes in pieces, as text in which nothing moves the cursor, clears the screen, or hides what is there: all but
    line ends, tabs and colours is written out (`\\x1b`, `\\xff`). Without `colors` these are left out."""

    def __init__(self, *, colors: bool) -> None:
        self._colors = colors
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._held = ""
        self._colored = False

    def feed(self, data: bytes) -> str:
        """What can be shown now; a character or a colour of which a part is still to come waits for that."""
        text = self._held + self._decoder.decode(data)
        begun = _BEGUN.search(text)
        self._held = "" if begun is None else begun[0]
        return self._shown(text.removesuffix(self._held) if self._held else text)

    def end(self) -> str:
        """What was kept; afterwards the terminal has its own colour again."""
        rest, self._held = self._held + self._decoder.decode(b"", final=True), ""
        shown = self._shown(rest)
        if self._colored:
            shown, self._colored = shown + _RESET, False
        return shown

    def _shown(self, text: str) -> str:
        parts = _COLOR.split(text.replace("\r\n", "\n"))
        for index, part in enumerate(parts):
            if index % 2 == 0:
                parts[index] = visible(part)
            elif self._colors:
                self._colored = part not in (_RESET, "\x1b[m")
            else:
                parts[index] = ""
        return "".join(parts)
